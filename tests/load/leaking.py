"""`python -m tests.load.leaking`: the server with a planted leak, which the soak has to find."""

from starlette.types import ASGIApp, Receive, Scope, Send

import app.__main__ as server
from app.main import create_app

LEAK_BYTES = 16384  # for each request


class Leaking:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._kept: list[bytearray] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._kept.append(bytearray(b"x" * LEAK_BYTES))
        await self._app(scope, receive, send)


def leaking_app(settings):
    app = create_app(settings)
    app.add_middleware(Leaking)
    return app


if __name__ == "__main__":
    server.create_app = leaking_app
    server.main()
