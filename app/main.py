"""The composition root: settings in, application out. Every part is built here and nowhere else."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib.util import find_spec

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from fastapi_offline import FastAPIOffline
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

from app.api.description import described
from app.api.protocols import huggingface, openai
from app.api.protocols.v2 import infer
from app.api.protocols.v2 import model as v2
from app.api.render import Drawings
from app.api.routes import (
    attention,
    classify,
    embed,
    evidence,
    kept,
    model,
    page,
    probes,
    report,
    tokens,
    wall,
    what_if,
)
from app.api.services import Services
from app.backend import Backend
from app.classifier import Classifier
from app.errors import StoreUnavailable
from app.http.access_log import MODEL_DIGEST, POLLED, AccessLog
from app.http.admission import Admission
from app.http.guard import REQUEST_ID, Guard
from app.http.keys import ApiKeys, open_keys
from app.http.paths import below, check_root_path
from app.http.problems import install_handlers
from app.inference.scoring import Scoring
from app.machine import IMAGES_NICENESS, allowed_cores, yield_by
from app.maps.explainer import Explainer
from app.maps.judgement import read_judgement
from app.maps.measurement import Measurement
from app.maps.occlusion import Occlusion
from app.maps.record import RecordFormat
from app.settings import VERSION, Settings
from app.stores.id import new_id
from app.stores.store import Store, open_store
from app.telemetry.metrics import watch_event_loop

log = logging.getLogger(__name__)

MAX_DRAWINGS = 64  # maps, walls and reports that are drawn or wait for a thread
HTTP = "http/protobuf"
OTLP_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")  # the first that is set counts
OTLP_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
EXPOSED_HEADERS = (  # to pages of other origins, beside those that browsers always show
    *("Accept-Encoding", "ETag", "Inference-Header-Content-Length", "Retry-After", "Server-Timing"),
    *("WWW-Authenticate", MODEL_DIGEST, REQUEST_ID),
)
ROUTERS = [
    part.router
    for part in (
        *(classify, embed, attention, wall, kept, tokens, evidence, report, what_if, model),
        *(huggingface, openai, v2, infer, probes, page),
    )
]


def create_app(
    settings: Settings | None = None, *, backend: Backend | None = None, keys: ApiKeys | None = None
) -> FastAPI:
    """The service, with its model loaded and warm. Without `keys` and a `backend` of these settings, it opens them.

    Raises CannotStart when the bundle, the device or the API keys cannot be used; then nothing is left running.
    """
    settings = settings or Settings()
    keys = open_keys(settings) if keys is None else keys
    backend = backend or Backend(settings=settings)
    try:
        return _put_together(settings, backend, keys)
    except BaseException:
        backend.stop()
        raise


def _put_together(settings: Settings, backend: Backend, keys: ApiKeys) -> FastAPI:
    """The parts, in the order in which a request meets them."""
    lifecycle, metrics, bundle = backend.lifecycle, backend.metrics, backend.bundle
    manifest = bundle.manifest
    check_root_path(settings.root_path, paths=[route.path for router in ROUTERS for route in router.routes])
    records = RecordFormat.of(bundle)
    store = open_store(settings=settings, namespace=records.name, least_bytes=records.least_bytes, metrics=metrics)
    scoring = Scoring.of(manifest)
    cpu_pool = ThreadPoolExecutor(
        max(settings.model_threads or allowed_cores(), 2),
        thread_name_prefix="cpu",
        initializer=yield_by,
        initargs=(IMAGES_NICENESS,),
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        watches = (backend.runner.watch(), backend.watch_weights(), watch_event_loop(metrics.loop_lag.observe))
        watching = [asyncio.create_task(watch) for watch in watches]
        watching.append(asyncio.create_task(_ask(store)))
        yield
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        # Beside the event loop, on which requests that are cancelled still get their answer.
        for stop in (cpu_pool.shutdown, backend.stop):
            await asyncio.to_thread(stop)
        await app.state.services.explainer.finish()
        await store.close()

    app: FastAPI = FastAPIOffline(
        title="vit-serve",
        description="Labels, embeddings and attention maps of a Vision Transformer.",
        docs_url="/docs",
        redoc_url=None,
        version=VERSION,
        redirect_slashes=False,
        swagger_ui_parameters={"defaultModelsExpandDepth": -1, "tryItOutEnabled": True},  # no list of schemas
        lifespan=lifespan,
        telemetry=_telemetry(settings),
    )
    # As they are: FastAPI would match a router that is included, and then its routes, anew for each request.
    app.router.routes.extend(route for router in ROUTERS for route in router.routes)
    routes = [route for route in app.routes if isinstance(route, Route)]
    app.openapi = partial(described, app.openapi, with_keys=bool(keys))  # type: ignore[method-assign]  # as FastAPI's documents have it
    install_handlers(app, routes=routes)

    model = backend.model()
    admission = Admission(
        max_images=settings.max_images_in_progress,
        max_wait_s=settings.max_queue_wait_s,
        image_s=model.expected("classify"),
        lifecycle=lifecycle,
    )
    explainer = Explainer(
        batcher=backend.batcher,
        store=store,
        new_id=new_id,
        records=records,
        places=admission,
        run_timeout_s=settings.request_timeout_s,
        metrics=metrics,
    )
    classifier = Classifier(
        preprocessor=backend.preprocessor, batcher=backend.batcher, familiarity=backend.familiarity, explainer=explainer
    )
    occlusion = Occlusion(
        patch=manifest.tokens.patch, batcher=backend.batcher, model=model, cpu_pool=cpu_pool, lifecycle=lifecycle
    )
    app.state.services = Services(
        settings=settings,
        lifecycle=lifecycle,
        admission=admission,
        bundle=bundle,
        judged=read_judgement(bundle),
        model=model,
        classifier=classifier,
        scoring=scoring,
        phrases=backend.phrases,
        occlusion=occlusion,
        explainer=explainer,
        measurement=Measurement(occlusion=occlusion, manifest=manifest, scoring=scoring, explainer=explainer),
        metrics=metrics,
        drawings=Drawings(pool=cpu_pool, max_in_work=MAX_DRAWINGS),
    )
    app.add_middleware(Guard, settings=settings, keys=keys, admission=admission)
    # Around the guard, so that it counts refusals too.
    app.add_middleware(AccessLog, metrics=metrics, routes=routes, model=bundle.digest)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=("GET", "HEAD", "POST"),
            allow_headers=("*",),
            expose_headers=EXPOSED_HEADERS,
        )
    metrics.images_queued.set_function(lambda: backend.batcher.waiting)
    metrics.images_in_progress.set_function(lambda: admission.images)
    metrics.expect(
        routes=((method, route.path) for router in ROUTERS for route in router.routes for method in route.methods),
        labels=manifest.labels,
        keys=keys.names,
    )
    known = {"name": manifest.name, "digest": bundle.digest, "precision": manifest.precision}
    metrics.model.info({**known, "provider": model.engine.provider, "version": VERSION})
    log.info("serving %s (%s)", manifest.name, bundle.digest[:12])
    return app


async def _ask(store: Store) -> None:
    """What is wrong with it is logged now, and not with the first map."""
    with suppress(StoreUnavailable):
        await store.find(new_id())


def _telemetry(settings: Settings) -> TelemetryConfig:
    protocol = next(filter(None, map(os.environ.get, OTLP_PROTOCOLS)), HTTP)
    if protocol != HTTP:
        log.warning("no traces are sent: OTLP is %s alone here, and %s asks for %s", HTTP, OTLP_PROTOCOLS[-1], protocol)
    exports = find_spec("opentelemetry.sdk") is not None
    if not exports and (endpoint := next(filter(os.environ.get, OTLP_ENDPOINTS), None)):
        log.warning("no traces are sent: %s needs the extra otel", endpoint)
    return {
        "auto_configure": protocol == HTTP and exports,  # if OTEL_EXPORTER_OTLP_ENDPOINT is set
        "tracing": True,
        "metrics": False,  # Prometheus has them
        "logs": False,  # they would contain the texts of exceptions
        "operation_spans": False,  # the stages are spans
        "exclude": lambda scope: below(settings.root_path, scope["path"]) in POLLED,
    }
