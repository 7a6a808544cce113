"""The composition root: settings in, application out. Nothing else in this package builds its own parts."""

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from fastapi import FastAPI, Security
from fastapi.security import HTTPBearer
from fastapi.telemetry import TelemetryConfig
from fastapi_offline import FastAPIOffline

from app.api import attention, classify, model, page, probes, report, verify, wall
from app.api.problems import install_handlers
from app.api.services import Services
from app.bundle import Bundle, load_bundle
from app.classifier import Classifier
from app.door.door import Door
from app.door.keys import ApiKeys, read_keys
from app.door.observation import MACHINES, Observation
from app.images.intake import open_intake
from app.inference.admission import Admission
from app.inference.batcher import Batcher
from app.inference.device import open_engine
from app.lifecycle import Lifecycle
from app.machine import IMAGES_NICENESS, allowed_cores, yield_by
from app.maps.distance import RunningDistance
from app.maps.verifier import Verifier
from app.settings import Settings
from app.stores.memory import MemoryStore
from app.stores.store import Store
from app.telemetry.metrics import Metrics, watch_event_loop

log = logging.getLogger(__name__)

VERSION = "0.1.0"  # pyproject.toml says the same
WATCH_S = 1.0  # between looks at the engine
TELEMETRY: TelemetryConfig = {
    "auto_configure": True,  # where OTEL_EXPORTER_OTLP_ENDPOINT says where to, and the SDK is installed
    "tracing": True,
    "metrics": False,  # Prometheus has them
    "logs": False,  # they would carry texts of exceptions
    "operation_spans": False,  # the stages are spans
    "exclude": lambda scope: scope["path"] in MACHINES,
}
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def create_app(settings: Settings | None = None) -> FastAPI:
    """The service, with its model loaded and warm.

    Raises BundleError for a bundle that is not right, DeviceError when the device asked for is not in use, ApiKeyError.
    """
    settings = settings or Settings()
    listed = settings.api_keys.get_secret_value() if settings.api_keys else ""
    keys = ApiKeys(read_keys(listed, settings.api_keys_file), metrics_port=settings.metrics_port)
    if not keys and settings.host not in LOOPBACK:
        log.warning("everybody who reaches %s may use the service: VIT_API_KEYS is not set", settings.host)
    services = _build(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        tasks = [
            asyncio.create_task(_watch(services.batcher)),
            asyncio.create_task(watch_event_loop(services.metrics.loop_lag)),
        ]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        services.batcher.stop()
        services.cpu_pool.shutdown()
        services.intake.stop()
        await services.store.close()

    app: FastAPI = FastAPIOffline(
        title="vit-serve",
        description="Labels and class-token attention maps of a Vision Transformer, from one forward pass.",
        docs_url="/docs",
        redoc_url=None,
        version=VERSION,
        redirect_slashes=False,
        dependencies=[Security(HTTPBearer(auto_error=False))] if keys else [],  # /docs asks for it; the door checks it
        lifespan=lifespan,
        telemetry=TELEMETRY,
    )
    app.state.services = services
    install_handlers(app)
    app.add_middleware(
        Door, settings=settings, keys=keys, refusal=lambda deadline: services.admission.refusal(deadline=deadline)
    )
    app.add_middleware(Observation, metrics=services.metrics)  # the outermost: it counts refusals too
    for routes in (classify, attention, wall, report, verify, model, probes, page):
        app.include_router(routes.router)
    return app


def _build(settings: Settings) -> Services:
    bundle = load_bundle(settings.bundle)
    cores = allowed_cores()
    lifecycle, metrics = Lifecycle(), Metrics()
    batcher = Batcher(lifecycle=lifecycle, on_batch=metrics.batch)
    intake = open_intake(settings=settings, framing=bundle.manifest.image.framing)
    with ThreadPoolExecutor(2) as starter:
        checked = starter.submit(bundle.check_files)  # hashing and loading take about as long, and release the GIL
        started = starter.submit(intake.start)  # waits for another process
        try:
            engine = batcher.start(lambda: open_engine(settings=settings, bundle=bundle))
            checked.result()
        except BaseException:
            started.result()
            intake.stop()
            checked.result()  # comes first: a damaged file explains whatever else went wrong
            raise
        started.result()
    admission = Admission(
        max_images=settings.max_queue_images,
        max_wait_s=settings.max_queue_wait_s,
        image_s=engine.expected("explain", 1),
        lifecycle=lifecycle,
    )
    metrics.watch_queue(waiting=lambda: batcher.waiting, admitted=lambda: admission.images)
    metrics.describe(
        name=bundle.manifest.name,
        digest=bundle.digest,
        precision=bundle.manifest.precision,
        provider=engine.provider,
        version=VERSION,
    )
    store = _open_store(settings, bundle, metrics)
    distance = RunningDistance(layers=bundle.manifest.layers, heads=bundle.manifest.heads)
    workers = settings.worker_threads or max(cores, 2)
    cpu_pool = ThreadPoolExecutor(workers, thread_name_prefix="cpu", initializer=yield_by, initargs=(IMAGES_NICENESS,))
    classifier = Classifier(
        bundle=bundle,
        intake=intake,
        batcher=batcher,
        store=store,
        distance=distance,
    )
    verifier = Verifier(bundle=bundle, batcher=batcher, engine=engine, cpu_pool=cpu_pool, lifecycle=lifecycle)
    log.info("serving %s (%s)", bundle.manifest.name, bundle.digest[:12])
    return Services(
        settings=settings,
        lifecycle=lifecycle,
        admission=admission,
        bundle=bundle,
        engine=engine,
        batcher=batcher,
        classifier=classifier,
        verifier=verifier,
        store=store,
        metrics=metrics,
        distance=distance,
        cpu_pool=cpu_pool,
        intake=intake,
    )


def _open_store(settings: Settings, bundle: Bundle, metrics: Metrics) -> Store:
    """Redis need not be there yet: pictures are classified without it."""
    if settings.store == "memory":
        return MemoryStore(max_bytes=settings.store_max_bytes, ttl_s=settings.store_ttl_s)
    from app.stores.redis import RedisStore  # a tenth of a second that only this needs

    return RedisStore(url=settings.store, ttl_s=settings.store_ttl_s, model=bundle.digest, metrics=metrics)


async def _watch(batcher: Batcher) -> None:
    while True:
        await asyncio.sleep(WATCH_S)
        batcher.check()
