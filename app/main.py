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
from app.bundle import Bundle, load_bundle
from app.classifier import Classifier
from app.cuda_engine import CudaEngine
from app.decoders import Decoders
from app.distance import RunningDistance
from app.engine import DeviceError, OnnxEngine
from app.errors import install_handlers
from app.images import Decoder
from app.intake import Intake
from app.preparer import Preparer
from app.quarantine import Quarantine
from app.routes import attention, classify, inspection, model, page, probes, report, verify, wall
from app.services import Services
from app.settings import Settings, allowed_cores, allowed_memory
from app.store import MemoryStore
from app.verifier import Verifier

log = logging.getLogger(__name__)

WORKER_NICENESS = 10
BYTES_PER_PIXEL = 12  # of a picture while it is decoded: as decoded, turned or converted, and what is made of it
DECODER_BYTES_PER_PIXEL = 24  # the most that any format takes: an animated WebP, of which libwebp keeps three canvases
DECODER_BYTES = 256 * 2**20  # beside the pixels
QUARANTINE_S = 600.0
QUARANTINE_ITEMS = 1000


def create_app(settings: Settings | None = None) -> FastAPI:
    """The service, with its model loaded and warm.

    Raises BundleError for a bundle that is not right, DeviceError when the device asked for is not in use.
    """
    services = _build(settings or Settings())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        services.batcher.stop()
        services.cpu_pool.shutdown()
        services.decoders.stop()

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
    batcher = Batcher(max_images=settings.max_queue_images)
    decoders = _decoders(settings, bundle, settings.decode_workers or max(cores, 2))
    with ThreadPoolExecutor(2) as starter:
        checked = starter.submit(bundle.check_files)  # hashing and loading take about as long, and release the GIL
        started = starter.submit(decoders.start)  # waits for another process
        try:
            engine = batcher.start(lambda: _open_engine(settings, bundle, settings.model_threads or cores))
            checked.result()
        except BaseException:
            started.result()
            decoders.stop()
            checked.result()  # comes first: a damaged file explains whatever else went wrong
            raise
        started.result()
    store = MemoryStore(max_bytes=settings.store_max_bytes, ttl_s=settings.store_ttl_s)
    distance = RunningDistance(layers=bundle.manifest.layers, heads=bundle.manifest.heads)
    workers = settings.worker_threads or max(cores, 2)
    cpu_pool = ThreadPoolExecutor(workers, thread_name_prefix="cpu", initializer=_yield_to_the_model)
    intake = Intake(
        decoders=decoders,
        quarantine=Quarantine(ttl_s=QUARANTINE_S, max_items=QUARANTINE_ITEMS),
        input_size=bundle.manifest.image.size,
        max_pixels=settings.max_image_pixels,
    )
    classifier = Classifier(
        bundle=bundle,
        intake=intake,
        batcher=batcher,
        store=store,
        distance=distance,
    )
    verifier = Verifier(bundle=bundle, batcher=batcher, engine=engine, cpu_pool=cpu_pool)
    log.info("serving %s (%s)", bundle.manifest.name, bundle.digest[:12])
    return Services(
        settings=settings,
        bundle=bundle,
        engine=engine,
        batcher=batcher,
        classifier=classifier,
        verifier=verifier,
        store=store,
        distance=distance,
        cpu_pool=cpu_pool,
        decoders=decoders,
    )


def _decoders(settings: Settings, bundle: Bundle, workers: int) -> Decoders:
    decoder = Decoder(max_pixels=settings.max_image_pixels, max_aspect_ratio=settings.max_aspect_ratio)
    room = settings.max_decode_pixels or allowed_memory() // 4 // BYTES_PER_PIXEL
    return Decoders(
        work=Preparer(decoder=decoder, framing=bundle.manifest.image.framing, thumbnail_px=settings.thumbnail_px),
        workers=workers,
        room=room,
        memory=DECODER_BYTES + DECODER_BYTES_PER_PIXEL * settings.max_image_pixels,
        timeout_s=settings.decode_timeout_s,
    )


def _open_engine(settings: Settings, bundle: Bundle, threads: int) -> OnnxEngine:
    """A warm engine on the device that the settings ask for; it belongs to the thread that this is called in."""
    image_size = bundle.manifest.image.size
    if settings.device != "cpu":
        try:
            return _warm(CudaEngine(folder=bundle.folder, image_size=image_size, max_batch=settings.max_batch))
        except DeviceError as error:
            if settings.device == "cuda":
                raise
            log.info("%s", error)
    return _warm(OnnxEngine(folder=bundle.folder, image_size=image_size, threads=threads, max_batch=settings.max_batch))


def _warm(engine: OnnxEngine) -> OnnxEngine:
    engine.warm_up()
    log.info("model runs on %s", engine.provider)
    return engine


def _yield_to_the_model() -> None:
    """Let this thread draw when the model leaves a core: the model's threads wait for each other by spinning.

    On Linux alone a thread has a priority of its own.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), WORKER_NICENESS)
