"""Many images, a few requests at a time: waits while the service is busy or away, and lists what cannot be used."""

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import httpx
import numpy as np
import numpy.typing as npt

from app.client import requests
from app.client.answers import Embedded, Problem, Result, ServiceProblem
from app.client.client import AsyncClient
from app.client.requests import Call

IMAGES, BYTES = 8, 8 * 2**20  # of one request at most
BUSY = {429, 502, 503, 504}  # the service, or the balancer before it, may answer later
FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 10.0
OWN = "about:blank"  # the type of problems that are this program's
T = TypeVar("T")


class GivenUp(Exception):
    """The service was busy or away for too long, or refuses every request; the message says which."""


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What is done with every image."""

    record: Callable[[str, Result | Problem], None]
    top_k: int
    maps: Path | None = None  # folder for heatmaps
    embeddings: dict[str, npt.NDArray[np.float32]] | None = None  # rows to fill, by image
    concurrency: int = 16
    patience_s: float = 600.0  # without an answer


@dataclass
class Progress:
    advance: Callable[[int], object]
    answered: float = field(default_factory=time.monotonic)  # when the service last did


async def run(client: AsyncClient, images: Sequence[str], wishes: Wishes, progress: Progress) -> None:
    """Raises GivenUp."""
    waiting = groups(images)

    async def work() -> None:
        for group in waiting:  # shared: each group is taken once
            await _group(client, group, wishes, progress)

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(wishes.concurrency):
                tasks.create_task(work())
    except* GivenUp as given_up:
        raise given_up.exceptions[0] from None


def groups(images: Sequence[str]) -> Iterator[list[str]]:
    """Images for one request each."""
    group: list[str] = []
    size = 0
    for image in images:
        bytes_of = Path(image).stat().st_size if Path(image).is_file() else 0
        if group and (len(group) == IMAGES or size + bytes_of > BYTES):
            yield group
            group, size = [], 0
        group.append(image)
        size += bytes_of
    if group:
        yield group


async def _group(client: AsyncClient, group: list[str], wishes: Wishes, progress: Progress) -> None:
    contents: dict[str, bytes] = {}
    for image in group:
        try:
            contents[image] = Path(image).read_bytes()
        except OSError as error:
            problem = Problem(
                type=OWN, title="Not read", status=0, detail=f"The file cannot be read: {error.strerror}."
            )
            wishes.record(image, problem)
            progress.advance(1)
    if wishes.embeddings is not None:
        vectors = await _each(client, contents, lambda given: requests.embed(given), wishes, progress)
        for image, vector in vectors.items():
            if isinstance(vector, Embedded):
                wishes.embeddings[image][:] = vector.embedding
    keep = wishes.maps is not None
    named = await _each(
        client, contents, lambda given: requests.classify(given, top_k=wishes.top_k, attention=keep), wishes, progress
    )
    for image, outcome in named.items():
        if wishes.maps and isinstance(outcome, Result) and outcome.id:
            await _draw(client, image, outcome.id, wishes, progress)
        wishes.record(image, outcome)
        progress.advance(1)


async def _each(
    client: AsyncClient,
    contents: dict[str, bytes],
    call: Callable[[list[bytes]], Call[list[T | Problem]]],
    wishes: Wishes,
    progress: Progress,
) -> dict[str, T | Problem]:
    """What each image gets. If none of several gets anything, each is asked alone, to learn what is wrong with it."""
    if not contents:
        return {}
    answered = await _patiently(client, call([*contents.values()]), wishes, progress)
    if not isinstance(answered, Problem):
        return dict(zip(contents, answered, strict=True))
    if len(contents) == 1:
        return dict.fromkeys(contents, answered)
    found: dict[str, T | Problem] = {}
    for image, content in contents.items():
        found |= await _each(client, {image: content}, call, wishes, progress)
    return found


async def _patiently(client: AsyncClient, call: Call[T], wishes: Wishes, progress: Progress) -> T | Problem:
    """The answer, or the problem that asking again would not change. Raises GivenUp."""
    wait_s = FIRST_WAIT_S
    while True:
        try:
            answer = await client.ask(call)
        except ServiceProblem as refused:
            if refused.problem.status == httpx.codes.UNAUTHORIZED:
                raise GivenUp("the service wants an API key: give it with --key or VIT_API_KEY") from None
            if refused.problem.status not in BUSY:
                progress.answered = time.monotonic()
                return refused.problem
            reason, after_s = str(refused), refused.retry_after_s
        except httpx.TransportError as error:
            reason, after_s = f"no answer: {error or type(error).__name__}", None
        else:
            progress.answered = time.monotonic()
            return answer
        if time.monotonic() - progress.answered > wishes.patience_s:
            raise GivenUp(f"nothing was answered for {wishes.patience_s:g} seconds ({reason})")
        await asyncio.sleep(random.uniform(0.5, 1) * (wait_s if after_s is None else after_s))
        wait_s = min(2 * wait_s, LONGEST_WAIT_S)


async def _draw(client: AsyncClient, image: str, id: str, wishes: Wishes, progress: Progress) -> None:
    assert wishes.maps
    drawn = await _patiently(client, requests.attention(id), wishes, progress)
    if isinstance(drawn, Problem):
        return  # the maps have expired; the label stands
    path = wishes.maps / (image.lstrip("/").replace("../", "") + ".png")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(drawn)
