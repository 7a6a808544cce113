"""How much memory batches take, and from that the largest that fits."""

import logging
import math

from app.inference.contract import Graph

log = logging.getLogger(__name__)

MIB = 2**20


class MemoryModel:
    """Resident memory that runs add, in bytes, learned from the first runs of each size.

    It takes memory for a run to grow with its images, and both graphs to keep theirs: ONNX Runtime's arena gives
    nothing back. Where memory is short the kernel ends the process without an error that a smaller batch could follow,
    so what does not fit must never run.
    """

    def __init__(self, *, allowed: float, before: int) -> None:
        """`allowed` is for all of this process, `before` what it has before its first run."""
        self._allowed = allowed
        self._before = before
        self._image: dict[Graph, float] = {}

    def add(self, graph: Graph, images: int, grown: int) -> None:
        """The first run of this many images made the resident memory grow by so much."""
        self._image[graph] = max(self._image.get(graph, 0.0), grown / images)

    def needed(self, images: int) -> float:
        """For batches of up to this many images."""
        return self._before + images * sum(self._image.values())

    def fits(self, images: int) -> bool:
        return self.needed(images) <= self._allowed

    def report(self, *, largest: int, wanted: int) -> None:
        """Log what was decided: batches of `largest` images, where `wanted` are allowed by the settings."""
        if math.isinf(self._allowed):
            return
        allowed = self._allowed / MIB
        if not self.fits(1):
            log.warning(
                "memory: the model needs about %d MiB for single images, and %d MiB are left for it. The kernel may "
                "end this process. Raise the memory limit or lower VIT_STORE_MAX_BYTES.",
                self.needed(1) / MIB,
                allowed,
            )
        elif largest < wanted:
            log.warning(
                "memory: batches have at most %d images, because the model would need about %d MiB for %d, and %d MiB "
                "are left for it",
                largest,
                self.needed(wanted) / MIB,
                wanted,
                allowed,
            )
        else:
            log.info(
                "memory: the model needs about %d MiB for batches of %d, and %d MiB are left for it",
                self.needed(largest) / MIB,
                largest,
                allowed,
            )


def warn_of_weights(needed: int, allowed: float) -> None:
    """Before the engine is opened: while it is, the kernel may end this process without a word."""
    if needed > allowed:
        log.warning(
            "memory: the weights alone take %d MiB, and %d MiB are left for the model. The kernel may end this "
            "process. Raise the memory limit, export the model in int8, or lower VIT_STORE_MAX_BYTES.",
            needed / MIB,
            allowed / MIB,
        )
