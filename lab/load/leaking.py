"""`python -m lab.load.leaking`: the server with a planted leak, which the soak test must find."""

from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

import app.main
from app.__main__ import main
from app.main import create_app

LEAK_BYTES = 16384  # per request


class Leak:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._kept: list[bytearray] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._kept.append(bytearray(b"x" * LEAK_BYTES))
        await self._app(scope, receive, send)


def leaking_app(*arguments: Any, **options: Any) -> FastAPI:
    leaky = create_app(*arguments, **options)
    leaky.add_middleware(Leak)
    return leaky


if __name__ == "__main__":
    app.main.create_app = leaking_app
    main([])
