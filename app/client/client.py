"""The service from Python: `Client`, and `AsyncClient` for asyncio. Both raise `ServiceProblem` for what is refused.

with Client("http://localhost:8000") as client:
    result = client.classify("photo.jpg", top_k=3)
    heatmap = client.attention(result.id, method="evidence")
"""

from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from app.client import requests
from app.client.answers import Embedded, Faithfulness, Result
from app.client.requests import Call, Source

TIMEOUT_S = 60.0
T = TypeVar("T")


class Client:
    """Every call is one request. `key` is an API key, where the service has keys."""

    def __init__(self, server: str, *, key: str | None = None, timeout_s: float = TIMEOUT_S) -> None:
        self._http = httpx.Client(**_options(server, key, timeout_s))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def ask(self, call: Call[T]) -> T:
        """Raises ServiceProblem, and httpx.TransportError where there is no answer."""
        return call.answered(self._http.send(_request(self._http, call)))

    def classify(self, image: Source, **parameters: Any) -> Result:
        """`parameters` are top_k, threshold and attention of POST /classify."""
        return requests.one(self.ask(requests.classify([image], **parameters)))

    def embed(self, image: Source, **parameters: Any) -> Embedded:
        """`parameters` are normalize and attention of POST /embed."""
        return requests.one(self.ask(requests.embed([image], **parameters)))

    def attention(self, id: str, **parameters: Any) -> bytes:
        """A map, as PNG unless `format` says json or npy. `parameters` are those of GET /attention/{id}."""
        return self.ask(requests.attention(id, **parameters))

    def verify(self, id: str, **parameters: Any) -> Faithfulness:
        """`parameters` are those of POST /attention/{id}/verify."""
        return self.ask(requests.verify(id, **parameters))

    def model(self) -> dict[str, Any]:
        """What is served: GET /model."""
        return self.ask(requests.model())


class AsyncClient:
    """`Client` for asyncio. At most `connections` requests are on their way at a time."""

    def __init__(
        self, server: str, *, key: str | None = None, timeout_s: float = TIMEOUT_S, connections: int = 16
    ) -> None:
        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        self._http = httpx.AsyncClient(**_options(server, key, timeout_s), limits=limits)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def ask(self, call: Call[T]) -> T:
        """Raises ServiceProblem, and httpx.TransportError where there is no answer."""
        return call.answered(await self._http.send(_request(self._http, call)))

    async def classify(self, image: Source, **parameters: Any) -> Result:
        """As `Client.classify`."""
        return requests.one(await self.ask(requests.classify([image], **parameters)))

    async def embed(self, image: Source, **parameters: Any) -> Embedded:
        """As `Client.embed`."""
        return requests.one(await self.ask(requests.embed([image], **parameters)))

    async def attention(self, id: str, **parameters: Any) -> bytes:
        """As `Client.attention`."""
        return await self.ask(requests.attention(id, **parameters))

    async def verify(self, id: str, **parameters: Any) -> Faithfulness:
        """As `Client.verify`."""
        return await self.ask(requests.verify(id, **parameters))

    async def model(self) -> dict[str, Any]:
        """As `Client.model`."""
        return await self.ask(requests.model())


def _options(server: str, key: str | None, timeout_s: float) -> dict[str, Any]:
    headers = {"X-API-Key": key} if key else {}
    return {"base_url": server, "headers": headers, "timeout": timeout_s, "follow_redirects": True}


def _request(http: httpx.Client | httpx.AsyncClient, call: Call[Any]) -> httpx.Request:
    """With its whole body in one piece: httpx would send every part of a form by itself."""
    request = http.build_request(call.method, call.path, params=call.params, files=call.files or None)
    request.read()
    return request
