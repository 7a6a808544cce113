"""`python -m tests.load.leaking`: the server with a planted leak, which the soak test must find."""

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

import app.main
from app.__main__ import main
from app.backend import Backend
from app.main import create_app
from app.settings import Settings

LEAK_BYTES = 16384  # per request


class Leaking:
    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner
        self._kept: list[bytearray] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._kept.append(bytearray(b"x" * LEAK_BYTES))
        await self._inner(scope, receive, send)


def leaking_app(settings: Settings | None = None, *, backend: Backend | None = None) -> FastAPI:
    leaky = create_app(settings, backend=backend)
    leaky.add_middleware(Leaking)
    return leaky


if __name__ == "__main__":
    app.main.create_app = leaking_app
    main()
