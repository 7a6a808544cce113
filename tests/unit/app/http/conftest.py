"""Requests made by hand."""

from collections.abc import Callable

import pytest
from starlette.requests import HTTPConnection


@pytest.fixture(scope="session")
def request_of() -> Callable[..., HTTPConnection]:
    """The head of a request: `request_of("/classify", "POST", port=9000, authorization="Bearer x")`."""

    def made(path: str = "/", method: str = "GET", *, port: int = 8000, **headers: str):
        raw = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
        scope = {"type": "http", "method": method, "path": path, "headers": raw, "server": ("127.0.0.1", port)}
        return HTTPConnection(scope)

    return made
