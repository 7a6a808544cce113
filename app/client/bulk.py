"""Many images, a few requests at a time. What cannot be used is listed, and stops nothing."""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from app.client import requests
from app.client.answers import Embedded, Problem, Result
from app.client.embeddings import Row
from app.client.patience import GivenUp, Patient
from app.client.requests import Call

IMAGES, BYTES = 8, 8 * 2**20  # of one request at most
OWN = "about:blank"  # the type of problems that are this program's
T = TypeVar("T")


class Bulk:
    """What is done with every image. Belongs to one event loop."""

    def __init__(
        self,
        *,
        service: Patient,
        record: Callable[[str, Result | Problem], object],
        top_k: int,
        maps: Path | None,
        method: str,
        embeddings: dict[str, Row] | None,
        concurrency: int,
    ) -> None:
        """`record` is called with what each image gets, in any order. `maps` is a folder for heatmaps of
        `method`. `embeddings` are rows to fill, by image. `concurrency` is the number of requests at a time.
        """
        self._service = service
        self._record = record
        self._top_k = top_k
        self._maps = maps
        self._method = method
        self._embeddings = embeddings
        self._concurrency = concurrency

    async def run(self, images: Sequence[str]) -> None:
        """Raises GivenUp, and OSError if something cannot be written."""
        waiting = groups(images)

        async def work() -> None:
            for group in waiting:  # shared: each group is taken once
                await self._group(group)

        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(self._concurrency):
                    tasks.create_task(work())
        except* (GivenUp, OSError) as stopped:
            raise stopped.exceptions[0] from None

    async def _group(self, group: list[str]) -> None:
        contents: dict[str, bytes] = {}
        for image in group:
            try:
                contents[image] = Path(image).read_bytes()
            except OSError as error:
                detail = f"The file cannot be read: {error.strerror}."
                self._record(image, Problem(type=OWN, title="Not read", status=0, detail=detail))
        if self._embeddings is not None:
            for image, embedded in (await self._each(contents, requests.embed)).items():
                if isinstance(embedded, Embedded):
                    self._embeddings[image][:] = embedded.embedding
        classify = partial(requests.classify, top_k=self._top_k, attention=self._maps is not None)
        for image, outcome in (await self._each(contents, classify)).items():
            if self._maps and isinstance(outcome, Result) and outcome.id:
                await self._draw(map_file(self._maps, image), outcome.id)
            self._record(image, outcome)

    async def _each(
        self, contents: dict[str, bytes], call: Callable[[list[bytes]], Call[list[T | Problem]]]
    ) -> dict[str, T | Problem]:
        """What each image gets. If several get one problem together, each is asked alone, to learn what is wrong."""
        if not contents:
            return {}
        answered = await self._service.ask(call([*contents.values()]))
        if not isinstance(answered, Problem):
            return dict(zip(contents, answered, strict=True))
        if len(contents) == 1:
            return dict.fromkeys(contents, answered)
        found: dict[str, T | Problem] = {}
        for image, content in contents.items():
            found |= await self._each({image: content}, call)
        return found

    async def _draw(self, path: Path, id: str) -> None:
        drawn = await self._service.ask(requests.attention(id, method=self._method))
        if isinstance(drawn, Problem):
            return  # the maps have expired; the label stands
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(drawn)


def groups(images: Sequence[str]) -> Iterator[list[str]]:
    """Images for one request each."""
    group: list[str] = []
    size = 0
    for image in images:
        more = _size(image)
        if group and (len(group) == IMAGES or size + more > BYTES):
            yield group
            group, size = [], 0
        group.append(image)
        size += more
    if group:
        yield group


def _size(image: str) -> int:
    """In bytes; 0 for what cannot be read, which is found out when it is."""
    try:
        return os.stat(image).st_size  # noqa: PTH116 (three times as fast as a Path)
    except OSError:
        return 0


def map_file(folder: Path, image: str) -> Path:
    """Where the heatmap of an image goes: below the folder, wherever the image is."""
    parts = ("_" if part == ".." else part for part in Path(image).parts if part != Path(image).anchor)
    return folder.joinpath(*parts).with_name(f"{Path(image).name}.png")
