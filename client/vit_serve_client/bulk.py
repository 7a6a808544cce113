"""Many images, a few requests at a time. An image that cannot be used is recorded and stops nothing."""

import random
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import httpx

from vit_serve_client.client import Answer, Client, NotTheService, ServiceProblem
from vit_serve_client.mirror import Mirror
from vit_serve_client.source import read_file

IMAGES, BYTES = 8, 8 * 2**20  # of a request with several images at most
FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 10.0
INTERRUPTIBLE_S = 0.5
SILENCE_S = 2.0  # the user gets a message after this long without an answer
TEMPORARY = {408, 429, 502, 503, 504}  # statuses of the service, or of a balancer before it
OF_IMAGE = {400, 413, 415, 422, 500}  # statuses that other images may not get
Record = Callable[[str, Answer], object]
T = TypeVar("T")


class GivenUp(Exception):
    """The run ends before its last image; the message says why, and what to do."""


@dataclass
class Bulk:
    """Raises GivenUp, and ServiceProblem unless the service answers. `refusals` counts the requests for which it was
    too busy; they are sent again.
    """

    client: Client
    _: KW_ONLY
    patience_s: float  # without any answer, after which the run ends
    waiting: Callable[[str], object]  # called with what is the matter, after a moment without any answer; once if busy
    top_k: int
    maps: Mirror | None  # for heatmaps of `method`
    method: str
    embedding: bool  # each result has one
    patches: Mirror | None = None  # for patch tokens
    unfamiliar: str | None = None  # as `least_familiarity`, of the service; None: as it is set
    least_familiarity: float | None = None
    labels: str | None = None  # with commas between; None: those of the model
    prompt: str | None = None  # in which the service reads them

    def __post_init__(self) -> None:
        self._ended = threading.Event()
        self._answered = time.monotonic()  # when the service last answered
        self._told: set[bool] = set()  # True: that it is busy; False: that it does not answer, since it last did
        self._passed = False  # whether the service has answered about an image
        self.refusals, self._lock = 0, threading.Lock()
        self.model = self._patiently(self.client.model)
        attention = "now" if self.maps else False  # each map is fetched, so one pass for labels and maps costs less
        familiar: dict[str, Any] = {"unfamiliar": self.unfamiliar, "least_familiarity": self.least_familiarity}
        self._embed = partial(self.client.embed_all, **familiar)
        self._patches = partial(self.client.patches_file, **familiar)
        self._ask = partial(self._embed, attention=attention)
        self.kinds = len(self.labels.split(",")) if self.labels else len(self.model.manifest.labels)
        if self.kinds:
            named: dict[str, Any] = {"labels": self.labels, "prompt": self.prompt, **familiar}
            self._ask = partial(self.client.classify_all, top_k=self.top_k, attention=attention, **named)

    def run(self, images: Sequence[str], record: Record, *, concurrency: int) -> None:
        """Calls `record` in this thread with each image and its result, in their order. The result may be an `error`.

        Raises GivenUp, ServiceProblem if no single image is the reason, and OSError if something cannot be written.
        Images without an outcome are left out then. KeyboardInterrupt does not wait for requests in progress.
        """
        pool = ThreadPoolExecutor(concurrency)
        tasks: deque[Future[dict[str, Answer]]] = deque()
        recording = False
        try:
            tasks.extend(pool.submit(self._send, part) for part in _parts(images))
            while tasks:
                while not tasks[0].done():  # Windows lets Ctrl-C through only between waits
                    wait([tasks[0]], timeout=INTERRUPTIBLE_S)
                results = tasks[0].result()
                recording = True
                tasks.popleft()
                for image, result in results.items():
                    record(image, result)
                recording = False
        except BaseException as error:
            self._ended.set()
            pool.shutdown(wait=not isinstance(error, KeyboardInterrupt), cancel_futures=True)
            if not recording and not isinstance(error, OSError):  # what follows half a record would not fit it
                for task in tasks:
                    if task.done() and not task.cancelled() and not task.exception():
                        for image, result in task.result().items():
                            record(image, result)
            raise
        pool.shutdown()

    def _send(self, images: Sequence[str]) -> dict[str, Answer]:
        """The result of each image. Its files are complete then."""
        contents: dict[str, bytes] = {}
        results: dict[str, Answer] = dict.fromkeys(images, Answer())
        for image in images:
            try:
                contents[image] = read_file(image)
            except OSError as error:
                results[image] = failed("Not read", f"The file cannot be read: {error.strerror}.")
        answers = self._each(contents, self._ask)
        results |= answers
        if self.embedding:
            good = {image: contents[image] for image, result in answers.items() if not result.error}
            embedded = self._each(good, self._embed) if self.kinds else answers
            for image in good:
                vector = array("f", embedded[image].embedding or ())  # small, as results wait for those before them
                results[image] = Answer(results[image], error=embedded[image].error, embedding=vector)
        if self.patches:
            for image in [image for image, result in results.items() if not result.error]:
                results[image] = self._with_patches(image, contents[image], results[image])
        if self.maps:
            for image, result in results.items():
                if heatmap := self._heatmap(result.id) if result.id else None:
                    if not self.maps.write(image, heatmap):
                        results[image] = failed("No heatmap", "Its heatmap can have no such name here.")
                elif not result.error:
                    results[image] = failed("No heatmap", "The service did not keep the maps of this image.")
        return results

    def _with_patches(self, image: str, content: bytes, result: Answer) -> Answer:
        """The same result once the file of its patches is there, else why it is not."""
        assert self.patches
        try:
            tokens = self._patiently(partial(self._patches, content))
        except ServiceProblem as refused:
            if not self._is_of_images(refused, 1):
                raise
            return Answer(error=refused.problem)
        if self.patches.write(image, tokens):
            return result
        return failed("No patches", "Its patches can have no such name here.")

    def _each(self, contents: dict[str, bytes], call: Callable[[list[bytes]], Answer]) -> dict[str, Answer]:
        """The result of each image. Those that are large, or get one problem together, are sent alone."""
        done: dict[str, Answer] = {}
        left = dict(contents)
        try:
            if len(left) == 1 or 0 < sum(map(len, left.values())) <= BYTES:
                self._patiently(partial(self._move, left, done, call))
        except ServiceProblem as refused:
            if not self._is_of_images(refused, len(left)):
                raise
            if len(left) == 1:
                return done | dict.fromkeys(left, Answer(error=refused.problem))
        for image, content in left.items():
            done |= self._each({image: content}, call)
        return done

    def _move(self, left: dict[str, bytes], done: dict[str, Answer], call: Callable[[list[bytes]], Answer]) -> None:
        """Each image from `left` to its result in `done`. Raises ServiceProblem if one has to be asked again."""
        answer = call([*left.values()])
        if answer.model.digest != self.model.digest:
            raise GivenUp("the service has another model now: give another --out, or serve the first model again")
        self._passed, again = True, None
        for image, result in zip([*left], answer.results, strict=True):
            if result.error and result.error.status in TEMPORARY:
                again = again or ServiceProblem(result.error)
            else:
                done[image] = result
                del left[image]
        if again:
            raise again

    def _heatmap(self, id: str) -> bytes | None:
        """None if the maps have expired."""
        try:
            return self._patiently(lambda: self.client.attention(id, method=self.method, format="png"))
        except ServiceProblem as refused:
            if not refused.problem.type.endswith(":unknown-attention"):
                raise
            return None

    def _patiently(self, call: Callable[[], T]) -> T:
        """Calls again while the service is busy or away. Raises ServiceProblem if that would change nothing."""
        wait_s = FIRST_WAIT_S
        while True:
            try:
                answer = call()
            except ServiceProblem as refused:
                by_others = isinstance(refused, NotTheService) and refused.problem.status >= 500
                if refused.problem.status not in TEMPORARY and not by_others:
                    raise
                reason, after_s, busy = str(refused), refused.retry_after_s, not isinstance(refused, NotTheService)
            except httpx.RequestError as error:
                reason, after_s, busy = str(error) or type(error).__name__, 0.0, False
            else:
                self._answered = time.monotonic()
                self._told.discard(False)
                return answer
            pause_s = max(after_s, random.uniform(0.5, 1) * wait_s)
            silent_s = time.monotonic() - self._answered
            with self._lock:
                self.refusals += busy
                tells = silent_s + pause_s >= SILENCE_S and busy not in self._told
                if tells:
                    self._told.add(busy)
            if tells:
                away = f"does not answer ({reason}). Is its address right, and is it running?"
                self.waiting(f"is busy ({reason})." if busy else away)
            left_s = self.patience_s - silent_s
            if left_s <= 0 or self._ended.wait(min(left_s, pause_s)):
                silence = f"nothing was answered for {self.patience_s:g} seconds ({reason})"
                raise GivenUp(f"{silence}. The same command goes on from here")
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    def _is_of_images(self, refused: ServiceProblem, count: int) -> bool:
        """Whether the refusal is about these images, so many in one request. If not, the address, the key or a
        parameter is wrong, and no other image would be answered.
        """
        status, type = refused.problem.status, refused.problem.type
        if isinstance(refused, NotTheService):
            return bool(status == 413 or (status == 403 and (self._passed or count > 1)))  # a firewall's
        return status in OF_IMAGE and not type.endswith(":invalid-parameter")


def failed(title: str, detail: str) -> Answer:
    """The result of an image that another run may name: no answer of the service has the status 0."""
    return Answer(error=Answer(type="about:blank", title=title, status=0, detail=detail))


def _parts(images: Iterable[str]) -> Iterator[list[str]]:
    """Images to read and send together: by the sizes of their files, so that few bytes are in memory at a time."""
    part: list[str] = []
    left = BYTES
    for image in images:
        size = 0
        with suppress(OSError):  # `_send` tells the user, when it reads the file
            size = Path(image).stat().st_size
        if part and (len(part) == IMAGES or size > left):
            yield part
            part, left = [], BYTES
        part.append(image)
        left -= size
    if part:
        yield part
