"""`python -m tests.load.leaking`: the server with a planted leak, which the soak test must find."""

from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

import app.main
from app.__main__ import main
from app.main import create_app

LEAK_BYTES = 16384  # per request


def leaking_app(*arguments: Any, **options: Any) -> FastAPI:
    kept: list[bytearray] = []

    def leaking(inner: ASGIApp) -> ASGIApp:
        async def call(scope: Scope, receive: Receive, send: Send) -> None:
            kept.append(bytearray(b"x" * LEAK_BYTES))
            await inner(scope, receive, send)

        return call

    leaky = create_app(*arguments, **options)
    leaky.add_middleware(leaking)
    return leaky


if __name__ == "__main__":
    app.main.create_app = leaking_app
    main()
