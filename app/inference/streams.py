"""An engine with streams for labels: several runs of one image side by side, each on its share of the cores."""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from app.inference.batch_cost import MemoryModel
from app.inference.engine import Engine, Graph, Plan
from app.inference.known_answer import KnownImage
from app.machine import resident_memory

log = logging.getLogger(__name__)

STREAMED: Graph = "classify"  # many images wait for labels; one at a time is explained


@dataclass(kw_only=True, eq=False)
class Streams:
    """The streams of one model. A stream answers after the known image has been checked on it. Any thread may call
    this.
    """

    count: int  # of runs at once; 1: there are no streams
    known: KnownImage
    open_engine: Callable[[], Engine] | None  # for so many runs of one image
    weights: int  # bytes that the engine holds
    engine: Engine | None = field(default=None, init=False)  # once it is open

    def plan(self) -> Plan | None:
        """A run of one image on a stream, if there are streams."""
        return Plan(STREAMED, 1, self.engine) if self.engine else None

    def open(self, *, memory: MemoryModel) -> bool:
        """Open the streams, if there is memory, and check the known image on each. Whether they are open."""
        assert self.open_engine
        if not self.has_room(memory=memory):
            log.warning("memory: streams do not fit, so images run one by one")
            return False
        try:
            engine = self.open_engine()
            run = partial(engine.run, STREAMED, *self.known.inputs(1))
            with ThreadPoolExecutor(self.count) as threads:
                for outputs in threads.map(lambda _: run(), range(self.count)):
                    self.known.check(STREAMED, outputs, provider=engine.provider)
        except Exception as error:
            log.warning("there are no streams, so images run one by one: %s", error)
            return False
        self.engine = engine
        return True

    def close(self) -> None:
        """Runs under way keep their engine."""
        self.engine, self.count = None, 1

    def has_room(self, *, memory: MemoryModel) -> bool:
        return memory.holds_streams(self.count, now=resident_memory(), weights=self.weights)
