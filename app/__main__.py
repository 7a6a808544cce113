"""`python -m app`: run the server with settings from VIT_* variables."""

import os
import signal
import sys

import uvicorn
from pydantic import ValidationError

from app.bundle import BundleError
from app.engine import DeviceError
from app.logs import configure
from app.main import create_app
from app.server import Server
from app.settings import Settings

KEEP_ALIVE_S = 75  # longer than load balancers keep idle connections, so that it is they who close


def main() -> None:
    try:
        settings = Settings()
    except ValidationError as error:
        for e in error.errors():
            print(f"VIT_{str(e['loc'][0]).upper()}: {e['msg']}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    for number in (signal.SIGTERM, signal.SIGINT):  # until the server takes them over there is nothing to finish
        signal.signal(number, lambda *_: os._exit(0))
    configure(settings.log_format, settings.log_level)
    try:
        app = create_app(settings)
    except (BundleError, DeviceError) as error:
        print(f"cannot start: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(3)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,  # its loggers write as all others do
        access_log=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=settings.drain_timeout_s,
        server_header=False,
    )
    Server(config, lifecycle=app.state.services.lifecycle, drain_delay_s=settings.drain_delay_s).run()


if __name__ == "__main__":
    main()
