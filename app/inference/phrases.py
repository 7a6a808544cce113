"""Texts of requests: their vectors, which are kept for a while, and the comparison of an image with them."""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

from app.bundle import Manifest
from app.errors import DeadlineExceeded, InvalidParameter, Unavailable
from app.inference.scoring import Scoring
from app.inference.unit import unit
from app.lifecycle import STOPPING
from app.machine import MODEL_NICENESS, yield_by

PROMPT = "This is a photo of {}."  # of transformers' pipeline
CACHE_BYTES = 16 * 2**20
ENTRY_BYTES = 1024  # of a text and its vector, beside their contents
AT_ONCE = 8  # texts in a run, between which other requests have theirs
NO_TOWER = "This bundle reads no texts: export a CLIP or SigLIP with --text to have its text tower."


Vectors = npt.NDArray[np.float32]  # (n, features), each of length 1


class Tower(Protocol):
    def embed(self, texts: Sequence[str]) -> Vectors: ...


class Phrases:
    """The vectors of texts. Belongs to the event loop; one thread runs the tower, and who waits for it is admitted as
    an image is.
    """

    def __init__(self) -> None:
        self.tower: Tower | None = None  # once it is open, if the bundle has one
        self._known: LRUCache[str, npt.NDArray[np.float32]] = LRUCache(CACHE_BYTES, getsizeof=_size)
        self._thread = ThreadPoolExecutor(
            1, thread_name_prefix="text", initializer=yield_by, initargs=(MODEL_NICENESS,)
        )

    def known(self, texts: Sequence[str]) -> Vectors | None:
        """The vectors (texts, features) if all are kept."""
        found = [self._known.get(text) for text in texts]
        vectors = [vector for vector in found if vector is not None]
        return np.stack(vectors) if len(vectors) == len(texts) else None

    async def embed(self, texts: Sequence[str], *, deadline: float) -> Vectors:
        """(texts, features). `deadline` is in seconds of time.monotonic, and is looked at between runs.

        Raises InvalidParameter for a bundle without a text tower and for a text with too many tokens, DeadlineExceeded,
        Unavailable.
        """
        if self.tower is None:
            raise InvalidParameter(NO_TOWER)
        found = {text: self._known.get(text) for text in texts}
        new = [text for text, vector in found.items() if vector is None]
        for at in range(0, len(new), AT_ONCE):
            if time.monotonic() >= deadline:
                raise DeadlineExceeded
            part = new[at : at + AT_ONCE]
            run = partial(self.tower.embed, part)
            try:
                running = asyncio.get_running_loop().run_in_executor(self._thread, run)
            except RuntimeError:  # the thread has ended
                raise Unavailable(STOPPING) from None
            vectors = await running
            for text, vector in zip(part, vectors, strict=True):
                self._known[text] = found[text] = vector.copy()  # not a view of all
        return np.stack([vector for vector in map(found.__getitem__, texts) if vector is not None])

    def close(self) -> None:
        """Finish the run under way, and end the thread. Blocks."""
        self._thread.shutdown(cancel_futures=True)


@dataclass(frozen=True, kw_only=True)
class Among:
    """Labels of a request, with which an image is compared."""

    labels: tuple[str, ...]
    vectors: Vectors  # (labels, features)
    scoring: Scoring
    scale: float
    bias: float

    @classmethod
    def of(cls, labels: tuple[str, ...], vectors: Vectors, manifest: Manifest) -> "Among":
        assert manifest.text is not None
        scoring = Scoring(labels=labels, kind=manifest.score)
        return cls(labels=labels, vectors=vectors, scoring=scoring, scale=manifest.text.scale, bias=manifest.text.bias)

    def logits(self, embedding: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
        """(labels,): scale * cosine + bias, as CLIP and SigLIP have it."""
        return np.asarray(self.scale * (self.vectors @ unit(embedding.astype(np.float64))) + self.bias)


def prompted(labels: Sequence[str], prompt: str) -> list[str]:
    return [prompt.replace("{}", label) for label in labels]


def _size(vector: npt.NDArray[np.float32]) -> int:
    return vector.nbytes + ENTRY_BYTES
