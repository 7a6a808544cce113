"""The composition root: settings in, application out. Every part is built here and nowhere else."""

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from operator import attrgetter

from fastapi import FastAPI, Security
from fastapi.security import HTTPBearer
from fastapi.telemetry import TelemetryConfig
from fastapi_offline import FastAPIOffline

from app.api import attention, classify, embed, huggingface, model, page, probes, report, verify, wall
from app.api.drawings import Drawings
from app.api.problems import install_handlers, problems
from app.api.services import Services
from app.api.v2 import infer
from app.api.v2 import model as v2
from app.bundle import Bundle, load_bundle
from app.classifier import Classifier
from app.door.cors import Cors
from app.door.door import Door
from app.door.keys import open_keys
from app.door.observation import MACHINES, Observation
from app.door.root import RootPath, below, check_root_path
from app.images.intake import Intake, open_intake
from app.inference.admission import Admission
from app.inference.batcher import Batcher
from app.inference.contract import Engine
from app.inference.device import open_engine
from app.lifecycle import Lifecycle
from app.machine import IMAGES_NICENESS, allowed_cores, allowed_memory, yield_by
from app.maps.distance import RunningDistance
from app.maps.verifier import Verifier
from app.settings import Settings
from app.stores.store import open_store
from app.telemetry.metrics import Metrics, watch_event_loop

log = logging.getLogger(__name__)

VERSION = "0.1.0"  # pyproject.toml says the same
ROUTERS = [
    part.router
    for part in (classify, embed, attention, wall, report, verify, model, huggingface, v2, infer, probes, page)
]


def create_app(settings: Settings | None = None) -> FastAPI:
    """The service, with its model loaded and warm. The parts are built in the order in which a request meets them.

    Raises CannotStart when the bundle, the device or the API keys cannot be used.
    """
    settings = settings or Settings()
    lifecycle, metrics = Lifecycle(), Metrics()
    keys = open_keys(settings)
    check_root_path(settings.root_path, paths=[route.path for router in ROUTERS for route in router.routes])
    bundle = load_bundle(settings.bundle)
    manifest = bundle.manifest

    intake = open_intake(settings=settings, framing=manifest.image.framing)
    batcher = Batcher(lifecycle=lifecycle, on_batch=metrics.batch)
    engine = _start(settings, bundle, intake, batcher)
    admission = Admission(
        max_images=settings.max_queue_images,
        max_wait_s=settings.max_queue_wait_s,
        image_s=engine.expected("explain", 1),
        lifecycle=lifecycle,
    )
    store = open_store(settings=settings, model=bundle.digest, metrics=metrics)
    distance = RunningDistance(layers=manifest.layers, heads=manifest.heads)
    classifier = Classifier(bundle=bundle, intake=intake, batcher=batcher, store=store, distance=distance)
    cpu_pool = ThreadPoolExecutor(
        settings.worker_threads or max(allowed_cores(), 2),
        thread_name_prefix="cpu",
        initializer=yield_by,
        initargs=(IMAGES_NICENESS,),
    )
    verifier = Verifier(bundle=bundle, batcher=batcher, engine=engine, cpu_pool=cpu_pool, lifecycle=lifecycle)

    metrics.watch_queue(waiting=lambda: batcher.waiting, admitted=lambda: admission.images)
    metrics.describe(
        name=manifest.name,
        digest=bundle.digest,
        precision=manifest.precision,
        provider=engine.provider,
        version=VERSION,
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        watching = [asyncio.create_task(watch) for watch in (batcher.watch(), watch_event_loop(metrics.loop_lag))]
        yield
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        batcher.stop()
        cpu_pool.shutdown()
        intake.stop()
        await store.close()

    app: FastAPI = FastAPIOffline(
        title="vit-serve",
        description="Labels and class-token attention maps of a Vision Transformer, from one forward pass.",
        docs_url="/docs",
        redoc_url=None,
        version=VERSION,
        redirect_slashes=False,
        generate_unique_id_function=attrgetter("name"),  # generators name their functions after it
        responses=problems(401, 431, 500, 503),  # of the door and the protocol below it, whatever the path
        dependencies=[Security(HTTPBearer(auto_error=False))] if keys else [],  # for /docs; the door checks the key
        lifespan=lifespan,
        telemetry=_telemetry(settings),
    )
    app.state.services = Services(
        settings=settings,
        lifecycle=lifecycle,
        admission=admission,
        bundle=bundle,
        engine=engine,
        classifier=classifier,
        verifier=verifier,
        store=store,
        metrics=metrics,
        distance=distance,
        cpu_pool=cpu_pool,
        drawings=Drawings(pool=cpu_pool, max_in_work=settings.max_drawings),
    )
    for router in ROUTERS:
        app.include_router(router)
    install_handlers(app)
    app.add_middleware(
        Door,
        settings=settings,
        keys=keys,
        cors=Cors(settings.cors_origins),
        refusal=lambda until: admission.refusal(deadline=until),
    )
    app.add_middleware(Observation, metrics=metrics)  # outside of the door, so that it counts refusals too
    app.add_middleware(RootPath, root_path=settings.root_path)
    log.info("serving %s (%s)", manifest.name, bundle.digest[:12])
    return app


def _telemetry(settings: Settings) -> TelemetryConfig:
    return {
        "auto_configure": True,  # if OTEL_EXPORTER_OTLP_ENDPOINT is set and the SDK is installed
        "tracing": True,
        "metrics": False,  # Prometheus has them
        "logs": False,  # they would contain the texts of exceptions
        "operation_spans": False,  # the stages are spans
        "exclude": lambda scope: below(settings.root_path, scope["path"]) in MACHINES,
    }


def _start(settings: Settings, bundle: Bundle, intake: Intake, batcher: Batcher) -> Engine:
    """Start the processes that decode, and load the model, at the same time."""
    of_store = settings.store_max_bytes if settings.store == "memory" else 0
    max_memory = allowed_memory() - intake.max_memory - of_store
    with ThreadPoolExecutor(1) as starter:
        started = starter.submit(intake.start)
        try:
            engine = batcher.start(lambda: open_engine(settings=settings, bundle=bundle, max_memory=max_memory))
        except BaseException:
            started.result()
            intake.stop()
            raise
        started.result()
        return engine
