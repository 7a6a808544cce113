"""The composition root: settings in, application out. Nothing else in this package builds its own parts."""

import logging
import os
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline

from app.batcher import Batcher
from app.bundle import load_bundle
from app.classifier import Classifier
from app.distance import RunningDistance
from app.engine import OnnxEngine
from app.errors import install_handlers
from app.images import Decoder
from app.intake import Intake
from app.routes import attention, classify, inspection, model, page, probes, report, verify, wall
from app.services import Services
from app.settings import Settings, allowed_cores
from app.store import MemoryStore
from app.verifier import Verifier

log = logging.getLogger(__name__)

WORKER_NICENESS = 10


def create_app(settings: Settings | None = None) -> FastAPI:
    """The service, with its model loaded and warm.

    Raises BundleError for a bundle that is not right, DeviceError when the device asked for is not in use.
    """
    services = _build(settings or Settings())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        services.batcher.start()
        yield
        services.batcher.stop()
        services.cpu_pool.shutdown()

    app: FastAPI = FastAPIOffline(
        title="vit-serve",
        description="Labels and class-token attention maps of a Vision Transformer, from one forward pass.",
        docs_url="/docs",
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.services = services
    install_handlers(app)
    for routes in (classify, attention, wall, report, verify, model, inspection, probes, page):
        app.include_router(routes.router)
    return app


def _build(settings: Settings) -> Services:
    bundle = load_bundle(settings.bundle)
    cores = allowed_cores()
    engine = OnnxEngine(
        folder=bundle.folder,
        image_size=bundle.manifest.image.size,
        device=settings.device,
        threads=settings.model_threads or cores,
    )
    latency = engine.warm_up(settings.max_batch)
    batcher = Batcher(engine=engine, max_batch=settings.max_batch, max_images=settings.max_queue_images)
    store = MemoryStore(max_bytes=settings.store_max_bytes, ttl_s=settings.store_ttl_s)
    distance = RunningDistance(layers=bundle.manifest.layers, heads=bundle.manifest.heads)
    workers = settings.worker_threads or max(cores, 2)
    cpu_pool = ThreadPoolExecutor(workers, thread_name_prefix="cpu", initializer=_yield_to_the_model)
    intake = Intake(
        decoder=Decoder(max_pixels=settings.max_image_pixels, max_aspect_ratio=settings.max_aspect_ratio),
        spec=bundle.manifest.image,
        pool=cpu_pool,
        workers=workers,
        thumbnail_px=settings.thumbnail_px,
    )
    classifier = Classifier(
        bundle=bundle,
        intake=intake,
        batcher=batcher,
        store=store,
        distance=distance,
    )
    verifier = Verifier(bundle=bundle, batcher=batcher, max_batch=settings.max_batch, cpu_pool=cpu_pool)
    log.info("serving %s (%s)", bundle.manifest.name, bundle.digest[:12])
    return Services(
        settings=settings,
        bundle=bundle,
        provider=engine.provider,
        latency=latency,
        batcher=batcher,
        classifier=classifier,
        verifier=verifier,
        store=store,
        distance=distance,
        cpu_pool=cpu_pool,
    )


def _yield_to_the_model() -> None:
    """Let this thread decode when the model leaves a core: the model's threads wait for each other by spinning.

    On Linux alone a thread has a priority of its own.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), WORKER_NICENESS)
