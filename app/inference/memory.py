"""How much memory batches take, and from that the largest that fits."""

from app.inference.contract import Graph


class MemoryModel:
    """Resident memory that runs add, in bytes, learned from the first runs of each size.

    It takes memory for a run to grow with its images, and `concurrency` runs of both graphs to keep theirs: ONNX
    Runtime's arenas give nothing back. Where memory is short the kernel ends the process without an error that a
    smaller batch could follow, so what does not fit must never run.
    """

    def __init__(self, *, allowed: float, before: int, concurrency: int) -> None:
        """`allowed` is for all of this process, `before` what it has before its first run."""
        self._allowed = allowed
        self._before = before
        self._concurrency = concurrency
        self._image: dict[Graph, float] = {}

    def add(self, graph: Graph, images: int, grown: int) -> None:
        """The first run of this many images made the resident memory grow by so much."""
        self._image[graph] = max(self._image.get(graph, 0.0), grown / images)

    def needed(self, images: int) -> float:
        """For batches of up to this many images."""
        return self._before + self._concurrency * images * sum(self._image.values())

    def fits(self, images: int) -> bool:
        return self.needed(images) <= self._allowed
