"""From settings to a server at its ports."""

import gc
import os
import sys
from functools import partial

import uvicorn
from fastapi import FastAPI
from pydantic import ValidationError

from app.door.protocol import GuardedProtocol
from app.errors import CannotStart
from app.machine import allow_open_files
from app.server import Server
from app.settings import Settings
from app.telemetry.logs import configure

KEEP_ALIVE_S = 75  # longer than load balancers keep idle connections, so that it is they who close


def load() -> tuple[FastAPI, Settings]:
    """The service as VIT_* variables ask for it, with its model warm. Ends the process when it cannot be."""
    try:
        settings = Settings()
    except ValidationError as error:
        for e in error.errors():
            print(f"VIT_{str(e['loc'][0]).upper()}: {e['msg']}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    configure(settings.log_format, settings.log_level)
    allow_open_files(4 * settings.max_connections)
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # ONNX Runtime reads it when it is imported, not later
    from app.main import create_app

    try:
        app = create_app(settings)
    except (CannotStart, OSError) as error:
        print(f"cannot start: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(3)
    gc.collect()
    gc.freeze()  # what stays for good: walking through it would stop the event loop for 50 to 110 ms now and then
    return app, settings


def serve(app: FastAPI, settings: Settings) -> None:
    """One server at one or two ports: the door tells them apart."""
    ports = [settings.port, settings.metrics_port] if settings.metrics_port else [settings.port]
    configs = [
        uvicorn.Config(
            app,
            host=settings.host,
            port=port,
            http=partial(GuardedProtocol, max_connections=settings.max_connections),  # type: ignore[arg-type]  # any factory of protocols will do
            ws="none",
            log_config=None,  # its loggers write as all others do
            access_log=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=settings.drain_timeout_s,
            server_header=False,
        )
        for port in ports
    ]
    server = Server(configs[0], lifecycle=app.state.services.lifecycle, drain_delay_s=settings.drain_delay_s)
    server.run(sockets=[config.bind_socket() for config in configs])
