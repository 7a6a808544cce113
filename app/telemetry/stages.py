"""How long one request spent where."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from opentelemetry import trace

Stage = Literal["receive", "decode", "queue", "inference", "store", "render"]


class Stages:
    """Of one request; its images may be in different stages at the same time. Times are seconds of `perf_counter`."""

    def __init__(self, *, observe: Callable[[Stage, float], None]) -> None:
        self._observe = observe
        self.began = time.perf_counter()  # as the request's header was there
        self._seconds: dict[Stage, float] = {}  # of several images the one that took longest

    @contextmanager
    def time(self, stage: Stage, *, start: float | None = None) -> Iterator[None]:
        """From now, or from `start`. Also when it ends by an exception: what failed took time too."""
        start = time.perf_counter() if start is None else start
        try:
            yield
        finally:
            self.add(stage, start, time.perf_counter())

    def add(self, stage: Stage, start: float, end: float) -> None:
        """Take in one image's stage, and trace it where requests are traced."""
        self._observe(stage, end - start)
        self._seconds[stage] = max(end - start, self._seconds.get(stage, 0.0))
        if trace.get_current_span().is_recording():
            now, wall = time.perf_counter(), time.time()
            began, ended = (round(1e9 * (wall - now + moment)) for moment in (start, end))
            trace.get_tracer(__name__).start_span(stage, start_time=began).end(ended)

    @property
    def server_timing(self) -> str:
        """As the header's value, in milliseconds (https://www.w3.org/TR/server-timing/); empty before any stage."""
        return ", ".join(f"{stage};dur={1000 * seconds:.2f}" for stage, seconds in self._seconds.items())
