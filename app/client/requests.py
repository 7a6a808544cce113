"""What is sent for each call, and what is made of its answer: shared by the client and the one for asyncio."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import httpx
from pydantic import BaseModel

from app.client.answers import Embedded, Faithfulness, Problem, Result, ServiceProblem, problem_of

Source = bytes | str | Path  # the bytes of an image file, or where it is
T = TypeVar("T")
Of = TypeVar("Of", bound=BaseModel)


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request, and how its answer is read."""

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    params: dict[str, str]
    files: Sequence[tuple[str, tuple[str, bytes, str]]] = ()

    def answered(self, response: httpx.Response) -> T:
        """Raises ServiceProblem."""
        if response.is_success:
            try:
                return self.read(response)
            except (ValueError, KeyError, TypeError):  # another server answers at this address
                raise ServiceProblem(problem_of(response.status_code, response.content)) from None
        after = response.headers.get("retry-after", "")
        raise ServiceProblem(
            problem_of(response.status_code, response.content),
            retry_after_s=float(after) if after.isdecimal() else None,
        )


def classify(images: Sequence[Source], **parameters: Any) -> Call[list[Result | Problem]]:
    return Call("POST", "/classify", _each(Result), _query(parameters), _form(images))


def embed(images: Sequence[Source], **parameters: Any) -> Call[list[Embedded | Problem]]:
    return Call("POST", "/embed", _each(Embedded), _query(parameters), _form(images))


def attention(id: str, **parameters: Any) -> Call[bytes]:
    """The map as the service sends it: PNG unless `format` says json or npy."""
    return Call("GET", f"/attention/{id}", lambda response: response.content, _query(parameters))


def verify(id: str, **parameters: Any) -> Call[Faithfulness]:
    return Call(
        "POST",
        f"/attention/{id}/verify",
        lambda response: Faithfulness.model_validate_json(response.content),
        _query(parameters),
    )


def model() -> Call[dict[str, Any]]:
    return Call("GET", "/model", lambda response: dict(response.json()), {})


def one(results: list[Of | Problem]) -> Of:
    """The result of the only image. Raises ServiceProblem."""
    (result,) = results
    if isinstance(result, Problem):
        raise ServiceProblem(result)
    return result


def _query(parameters: dict[str, Any]) -> dict[str, str]:
    """As they stand in an address. Those that are None are left out."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in parameters.items()
        if value is not None
    }


def _each(kind: type[Of]) -> Callable[[httpx.Response], list[Of | Problem]]:
    def read(response: httpx.Response) -> list[Of | Problem]:
        results = response.json()["results"]
        return [Problem(**r["error"]) if "error" in r else kind.model_validate(r) for r in results]

    return read


def _form(images: Sequence[Source]) -> list[tuple[str, tuple[str, bytes, str]]]:
    """The service looks at the bytes, whatever type a part says it has."""
    return [
        ("image", (f"{i}", image if isinstance(image, bytes) else Path(image).read_bytes(), "application/octet-stream"))
        for i, image in enumerate(images)
    ]
