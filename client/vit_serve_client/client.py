"""The service from Python.

with Client("http://localhost:8000") as client:
    result = client.classify("photo.jpg", top_k=3)
    heatmap = client.attention(result.id, method="evidence")
    heatmap.overlay().save("evidence.png")
"""

import json
import os
import ssl
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import closing, suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from reprlib import Repr
from threading import Thread
from typing import TYPE_CHECKING, Any, Self, overload
from urllib.parse import quote

import httpx

from vit_serve_client.address import whole
from vit_serve_client.map import Map, picture
from vit_serve_client.npy import of_one
from vit_serve_client.proxy import proxy_to
from vit_serve_client.shapes import has_results, has_values, is_classified, is_embedded, is_model, is_problem
from vit_serve_client.source import Source, file_of

if TYPE_CHECKING:
    import numpy.typing as npt
    from PIL.Image import Image

    Array = npt.NDArray[Any]

NPY = "application/x-npy"
MAP_TYPES = {"image/png", "application/json", NPY}
# Bytes of an answer: of all labels of eight images; of 50 million pixels, or 40,000 tokens of 1,536 numbers.
LARGEST_JSON, LARGEST_MAP = 2**25, 2**28
TIMEOUT = httpx.Timeout(60.0, connect=5.0)  # seconds
IMAGES, BYTES = 16, 24 * 2**20  # of one request, which the service takes unless it is set to less


class Answer(dict[str, Any]):
    """JSON of the service, with its members as attributes too: `result.predictions[0].label`. None if missing."""

    def __getattr__(self, name: str) -> Any:
        return self.get(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        """Of long lists, such as embeddings, the beginning."""
        short = Repr()
        short.maxother = short.maxstring = 1000
        return f"Answer({', '.join(f'{name}={short.repr(value)}' for name, value in self.items())})"


class ServiceProblem(Exception):
    """The service refused, or failed. `problem` says why, with `status`, `type`, `title` and `detail` (RFC 9457)."""

    def __init__(self, problem: Answer, *, retry_after_s: float = 0.0) -> None:
        """`retry_after_s` is when the service wants the next request, if it says so."""
        super().__init__(f"{problem.status} {problem.title}: {problem.detail}")
        self.problem = problem
        self.retry_after_s = retry_after_s


class NotTheService(ServiceProblem):
    """Something else answered: a login page, a proxy, another service."""


class Client:
    """Every call is one request, of many images several. It raises ServiceProblem and httpx.RequestError.

    Threads may share a client. Its API key goes to `server` alone, as no redirect is followed; by plain http it passes
    the `proxy` that the environment names.
    """

    def __init__(self, server: str, *, key: str | None = None, deadline_s: float = 600.0) -> None:
        """A request whose answer is not whole after `deadline_s` ends with httpx.ReadTimeout.

        Raises ConnectionError if httpx cannot use the proxy or the certificates, and httpx.InvalidURL.
        """
        server = whole(server)
        # A few compressed bytes can be very many.
        headers = {"Accept-Encoding": "identity"} | ({"X-API-Key": key} if key else {})
        self._deadline_s = deadline_s
        self.proxy = proxy_to(server)
        trust = _trust(server)
        try:
            transport = httpx.HTTPTransport(trust, limits=httpx.Limits(), proxy=self.proxy and self.proxy.url)
        except (ImportError, ValueError):
            raise ConnectionError(f"{self.proxy} is of a kind that is not supported: use http:// or https://") from None
        self._http = httpx.Client(base_url=server, headers=headers, timeout=TIMEOUT, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def __repr__(self) -> str:
        return f"Client('{self._http.base_url}')"

    def classify(self, image: Source, **parameters: Any) -> Answer:
        """`parameters` are top_k, threshold, labels (a list of texts, or one with commas between), prompt, attention,
        unfamiliar and least_familiarity of POST /classify.
        """
        return _only(self.classify_all([image], **parameters))

    def classify_all(self, images: Iterable[Source], **parameters: Any) -> Answer:
        """Any number of images, 16 in a request: `results` are in their order, and have `error` where one failed."""
        return self._each("/classify", is_classified, images, parameters)

    def embed(self, image: Source, **parameters: Any) -> Answer:
        """`parameters` are normalize, attention, unfamiliar and least_familiarity of POST /embed."""
        return _only(self.embed_all([image], **parameters))

    def embed_all(self, images: Iterable[Source], **parameters: Any) -> Answer:
        """The embeddings of several images, answered as by `classify_all`."""
        return self._each("/embed", is_embedded, images, parameters)

    def patches(self, image: Source, **parameters: Any) -> "Array":
        """The tokens of an image (rows, columns, features), or with tokens="all" (tokens, features). `parameters` are
        tokens, layer, dtype, normalize, unfamiliar and least_familiarity of POST /embed.
        """
        return _array(self.patches_file(image, **parameters))

    def patches_file(self, image: Source, **parameters: Any) -> bytes:
        """The same as a .npy file."""
        query = {"tokens": "patches"} | parameters
        content = _file(self._ask("POST", "/embed", query, [_file_of(image)], largest=LARGEST_MAP), {NPY})
        return of_one(content)

    @overload
    def attention(self, of: Source, *, format: None = None, **parameters: Any) -> Map: ...

    @overload
    def attention(self, of: Source, *, format: str, **parameters: Any) -> bytes: ...

    def attention(self, of: Source, *, format: str | None = None, **parameters: Any) -> Map | bytes:
        """A map of an image that was classified, by its id, or of an image that is not kept: its bytes, its Path, a PIL
        image or an array. `parameters` are those of GET /attention/{id}. With `format`, the file: png, json or npy.
        """
        ask = partial(self._ask, "GET", _place(of)) if isinstance(of, str) else partial(self._ask_of, _file_of(of))

        def drawn(**more: Any) -> bytes:
            return _file(ask({"format": "png"} | parameters | more, largest=LARGEST_MAP), MAP_TYPES)

        if format:
            return drawn(format=format)
        return Map(_read(ask({"format": "json"} | parameters), has_values), draw=drawn)

    def wall(self, id: str, **parameters: Any) -> "Image":
        """Maps of every layer and head on one sheet. `parameters` are those of GET /attention/{id}/wall."""
        return picture(_file(self._ask("GET", f"{_place(id)}/wall", parameters, largest=LARGEST_MAP), MAP_TYPES))

    def walls(self, id: str) -> "Array":
        """The numbers of that sheet (layers, heads, rows, columns)."""
        return _array(_file(self._ask("GET", f"{_place(id)}/wall", {"format": "npy"}, largest=LARGEST_MAP), {NPY}))

    def tokens(self, id: str, **parameters: Any) -> "Array":
        """As `patches`, of an image that was classified. `parameters` are tokens, layer and dtype."""
        return _array(of_one(_file(self._ask("GET", f"{_place(id)}/tokens", parameters, largest=LARGEST_MAP), {NPY})))

    def report(self, id: str, **parameters: Any) -> Answer:
        """Numbers by layer and head: GET /attention/{id}/report, whose parameter is label."""
        return _read(self._ask("GET", f"{_place(id)}/report", parameters), lambda answer: answer["heads"])

    def evidence(self, id: str, vectors: Sequence[Sequence[float]]) -> Answer:
        """What patches add to the inner product of the embedding with each vector: POST /attention/{id}/evidence."""
        return _read(self._ask("POST", f"{_place(id)}/evidence", {}, body=vectors), lambda answer: answer["results"])

    def verify(self, id: str, **parameters: Any) -> Answer:
        """How faithful a map is. `parameters` are those of POST /attention/{id}/verify."""
        return _read(self._ask("POST", f"{_place(id)}/verify", parameters), lambda answer: answer["deletion"])

    def cover(self, id: str, **parameters: Any) -> Answer:
        """What changes without some patches. `parameters` are those of POST /attention/{id}/cover."""
        return _read(self._ask("POST", f"{_place(id)}/cover", parameters), lambda answer: answer["after"])

    def model(self) -> Answer:
        """What is served: GET /model."""
        return _read(self._ask("GET", "/model", {}), is_model)

    def judged(self) -> Answer | None:
        """What `vit-serve judge` has measured, the most faithful of `maps` first; None if it has not."""
        table: Answer | None = self.model().judged
        return table

    def _each(
        self,
        path: str,
        is_known: Callable[[dict[str, Any]], bool],
        images: Iterable[Source],
        parameters: dict[str, Any],
    ) -> Answer:
        whole = Answer(model=None, results=[])
        for files in _together(images):
            has_all = partial(has_results, images=len(files), is_known=is_known)
            part = _read(self._ask("POST", path, parameters, files), has_all)
            if whole.model and whole.model != part.model:
                raise ServiceProblem(
                    Answer(title="Another model", detail="The service has another model since it began.")
                )
            whole = Answer(part, results=[*whole.results, *part.results])
        return whole

    def _ask_of(
        self, file: tuple[str, bytes], parameters: dict[str, Any], *, largest: int = LARGEST_JSON
    ) -> httpx.Response:
        return self._ask("POST", "/attention", parameters, [file], largest=largest)

    def _ask(
        self,
        method: str,
        path: str,
        parameters: dict[str, Any],
        files: Sequence[tuple[str, bytes]] = (),
        *,
        body: object = None,
        largest: int = LARGEST_JSON,
    ) -> httpx.Response:
        parts = [("image", file) for file in files]
        query = {name: _sent(value) for name, value in parameters.items() if value is not None}
        way = {"by": f" by {self.proxy}" if self.proxy else ""}  # for a message
        request = self._http.build_request(method, path, params=query, files=parts or None, json=body, extensions=way)
        request.read()  # its whole body in one piece: httpx would send every part of a form by itself
        try:
            response = self._in_time(request, largest)
        except httpx.RequestError as error:
            by_proxy = f"by {self.proxy}: does no_proxy lack this server?" if self.proxy else ""
            error.args = (f"{str(error) or type(error).__name__}, {by_proxy or f'at {self._http.base_url}'}",)
            raise
        if response.is_success:
            return response
        raise ServiceProblem(_read(response, is_problem), retry_after_s=_retry_after_s(response))

    def _in_time(self, request: httpx.Request, largest: int) -> httpx.Response:
        """The answer, within the deadline. It is read in a thread that may be left: httpx times single reads, even of a
        byte.
        """
        answer: Future[httpx.Response] = Future()

        def fetch() -> None:
            with suppress(InvalidStateError):  # it came too late
                try:
                    answer.set_result(self._whole(request, largest, answer.cancelled))
                except Exception as error:
                    answer.set_exception(error)

        Thread(target=fetch, daemon=True).start()
        try:
            return answer.result(self._deadline_s)
        except TimeoutError:
            raise httpx.ReadTimeout(f"no whole answer in {self._deadline_s:g} seconds", request=request) from None
        finally:
            answer.cancel()

    def _whole(self, request: httpx.Request, largest: int, is_late: Callable[[], bool]) -> httpx.Response:
        """The answer with its body. Raises NotTheService for a body that is compressed or too large."""
        body = bytearray()
        with closing(self._http.send(request, stream=True)) as response:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise _not_the_service(response, "a compressed body, which was not asked for")
            most = largest if response.is_success else LARGEST_JSON
            for part in response.iter_raw():
                body += part
                if len(body) > most:
                    raise _not_the_service(response, f"more than {most:,} bytes")
                if is_late():
                    break
        return httpx.Response(response.status_code, headers=response.headers, content=bytes(body), request=request)


def _file_of(image: Source, number: int = 0) -> tuple[str, bytes]:
    """Its name and its bytes. Names that are no UTF-8 cannot be sent."""
    named = isinstance(image, str | Path)
    return os.fsencode(Path(image).name).decode(errors="replace") if named else str(number), file_of(image)


def _together(images: Iterable[Source]) -> Iterator[list[tuple[str, bytes]]]:
    """Images as files, as many as one request may have; one request without any."""
    files: list[tuple[str, bytes]] = []
    for number, image in enumerate(images):
        file = _file_of(image, number)
        if len(files) == IMAGES or (files and sum(len(content) for _, content in files) + len(file[1]) > BYTES):
            yield files
            files = []
        files.append(file)
    yield files


def _sent(value: Any) -> Any:
    """A list as the service reads it: numbers with commas between, and texts, which may have commas, in JSON."""
    if not isinstance(value, list | tuple):
        return value
    return json.dumps(value) if any(isinstance(one, str) for one in value) else ",".join(map(str, value))


def _array(npy: bytes) -> "Array":
    import numpy as np

    array: Array = np.load(BytesIO(npy))
    return array


def _place(id: str) -> str:
    """The path of maps. An id may be anything that was answered."""
    return f"/attention/{quote(id, safe='', errors='replace')}"


def _trust(server: str) -> ssl.SSLContext:
    """The certificates by which the server's is checked. Raises ConnectionError if they cannot be read."""
    if httpx.URL(server).scheme != "https":
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts none
    try:
        return httpx.create_ssl_context()
    except OSError as error:
        named = os.environ.get("SSL_CERT_FILE")  # by which httpx goes
        raise ConnectionError(f"no certificates can be read from SSL_CERT_FILE, {named}: {error.strerror}") from None


def _file(response: httpx.Response, types: Collection[str]) -> bytes:
    """Raises NotTheService for another type than these."""
    if response.headers.get("content-type") not in types:
        raise _not_the_service(response)
    return response.content


def _only(answer: Answer) -> Answer:
    result: Answer = answer.results[0]
    if result.error:
        raise ServiceProblem(result.error)
    return result


def _read(response: httpx.Response, is_known: Callable[[Answer], object]) -> Answer:
    try:
        answer: Answer = json.loads(response.content, object_hook=Answer)
        if isinstance(answer, Answer) and is_known(answer):
            return answer
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        pass
    raise _not_the_service(response)


def _not_the_service(response: httpx.Response, what: str = "") -> NotTheService:
    server = f"{response.url.scheme}://{response.url.netloc.decode()}{response.request.extensions['by']}"
    if response.has_redirect_location:
        to = response.headers["location"]
        detail = f"{server} redirects to {to}. No redirect is followed: give the address of the service itself."
    else:
        # Not by the charset that it names: some of Python's decompress, or give no text.
        what = what or " ".join(response.content[:1000].decode(errors="replace").split())[:200] or "the body is empty"
        detail = f"{server} answers something else: {what}"
    problem = Answer(type="about:blank", title="No answer of the service", status=response.status_code, detail=detail)
    return NotTheService(problem, retry_after_s=_retry_after_s(response))


def _retry_after_s(response: httpx.Response) -> float:
    text = response.headers.get("retry-after", "")
    return float(text) if text.isdecimal() else 0.0
