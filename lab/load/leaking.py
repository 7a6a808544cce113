"""`python -m lab.load.leaking`: the server with a planted leak, which the soak test must find."""

from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.middleware.base import RequestResponseEndpoint

import app.main
from app.__main__ import main
from app.main import create_app

LEAK_BYTES = 16384  # per request


def leaking_app(*arguments: Any, **options: Any) -> FastAPI:
    kept: list[bytearray] = []
    leaky = create_app(*arguments, **options)

    @leaky.middleware("http")
    async def leak(request: Request, call_next: RequestResponseEndpoint) -> Response:
        kept.append(bytearray(b"x" * LEAK_BYTES))
        return await call_next(request)

    return leaky


if __name__ == "__main__":
    app.main.create_app = leaking_app
    main()
