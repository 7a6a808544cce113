"""`python -m app`: run the server with settings from VIT_* variables."""

import signal
import sys

import uvicorn
from pydantic import ValidationError

from app.bundle import BundleError
from app.engine import DeviceError
from app.logs import configure
from app.main import create_app
from app.settings import Settings

KEEP_ALIVE_S = 75  # longer than load balancers keep idle connections, so that it is they who close


def main() -> None:
    try:
        settings = Settings()
    except ValidationError as error:
        for e in error.errors():
            print(f"VIT_{str(e['loc'][0]).upper()}: {e['msg']}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    # While loading this ends the process at once; later uvicorn finishes its requests first and then raises it again.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    configure(settings.log_format, settings.log_level)
    try:
        app = create_app(settings)
    except (BundleError, DeviceError) as error:
        print(f"cannot start: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(3)
    uvicorn.run(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,  # its loggers write as all others do
        access_log=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        server_header=False,
    )


if __name__ == "__main__":
    main()
