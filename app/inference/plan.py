"""A run of the model, before it begins."""

from typing import NamedTuple

from app.inference.engine import Engine, Graph


class Plan(NamedTuple):
    """One run."""

    graph: Graph
    images: int
    streamed: Engine | None = None  # the engine on one of whose streams it runs, beside others; None: on all cores
