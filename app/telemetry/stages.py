"""How long one request spent in each stage."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from opentelemetry import trace

Stage = Literal["receive", "decode", "queue", "inference", "store", "render", "text"]


class Stages:
    """The stages of one request. Its images can be in different stages at the same time. All times are in seconds of
    time.perf_counter."""

    def __init__(self, *, observe: Callable[[Stage, float], None]) -> None:
        self._observe = observe
        self.began = time.perf_counter()  # when the request's header had arrived
        self._seconds: dict[Stage, float] = {}  # the longest of its images
        self._traced = trace.get_current_span().is_recording()

    @contextmanager
    def time(self, stage: Stage) -> Iterator[None]:
        """Time a block. One that raises is timed too."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add(stage, start, time.perf_counter())

    def add(self, stage: Stage, start: float, end: float) -> None:
        """Add one stage of one image. It becomes a span if the request was traced when it began."""
        self._observe(stage, end - start)
        self._seconds[stage] = max(end - start, self._seconds.get(stage, 0.0))
        if self._traced:
            now, wall = time.perf_counter(), time.time()
            began, ended = (round(1e9 * (wall - now + moment)) for moment in (start, end))
            trace.get_tracer(__name__).start_span(stage, start_time=began).end(ended)

    @property
    def server_timing(self) -> str:
        """Value of the Server-Timing header, in milliseconds (https://www.w3.org/TR/server-timing/). Empty at first."""
        return ", ".join(f"{stage};dur={1000 * seconds:.2f}" for stage, seconds in self._seconds.items())
