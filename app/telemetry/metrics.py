"""Every metric for Prometheus. docs/operations.md lists them too.

A counter that Prometheus first sees at 3 has no rate, so its first burst fires no alert. What an alert counts is
therefore there from the start, as 0.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from time import process_time
from typing import get_args

from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from app.errors import Overloaded, UnsupportedType, UnusableImage
from app.machine import cpu_seconds
from app.telemetry.logs import dropped_lines
from app.telemetry.stages import Stage

STAGES: tuple[Stage, ...] = get_args(Stage)
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SCORES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0)
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
LOOP_INTERVAL_S = 0.25
EXPOSITION_TYPE = CONTENT_TYPE_PLAIN_0_0_4  # of what `exposition` returns
MAX_LABELS = 50  # with a name of their own
OTHER_LABELS = "other"
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}  # any other method counts as OTHER


class Metrics:
    """The metrics of one application, in their own registry. Any thread may call it."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(DroppedLines())
        self.cpu = CpuSeconds()
        registry.register(self.cpu)
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        seconds = partial(Histogram, buckets=SECONDS, registry=registry)
        self.model = Info("vit_model", "The model that is served, and the device that it runs on", registry=registry)
        self._requests = counter("vit_requests", "Requests answered", ["method", "route", "status"])
        self._request_seconds = seconds("vit_request_seconds", "Time to the last byte of the answer", ["route"])
        self.in_flight = gauge("vit_requests_in_flight", "Requests being answered")
        self._problems = counter("vit_problems", "Requests answered with a problem", ["kind"])
        self._problems.labels(Overloaded.kind)
        self._key_requests = counter("vit_key_requests", "Requests that brought a key, by its name", ["key"])
        # classified, embedded, explained, abandoned, or the kind of the problem
        self.images = counter("vit_images", "Images by outcome", ["outcome"])
        for outcome in ("classified", "embedded", UnusableImage.kind, UnsupportedType.kind):
            self.images.labels(outcome)
        self._images_by_label = counter("vit_top_labels", "Images by their most likely label", ["label"])
        self._top_scores = Histogram(
            "vit_top_score", "Score of an image's most likely label", buckets=SCORES, registry=registry
        )
        self.familiarity = Histogram(
            "vit_familiarity", "Familiarity of an image, refused or not", buckets=SHARES, registry=registry
        )
        stage_seconds = seconds("vit_stage_seconds", "Time of an image in a stage", ["stage"])
        self._stages = {stage: stage_seconds.labels(stage) for stage in STAGES}
        self._batches = Histogram(
            "vit_batch_images", "Images in a forward pass", ["graph"], buckets=BATCHES, registry=registry
        )
        self.images_queued = gauge("vit_images_queued", "Images waiting for a forward pass")
        self.images_in_progress = gauge("vit_images_in_progress", "Images in progress, waiting ones included")
        self.store_failures = counter("vit_store_failures", "Records not written or not read", ["operation", "reason"])
        for reason in ("full", "refused"):
            self.store_failures.labels("put", reason)
        self.breaker = gauge("vit_store_breaker_open", "1 while the store is not asked")
        self.loop_lag = seconds("vit_event_loop_lag_seconds", "How late the event loop runs a timer")

    def expect(self, *, routes: Iterable[tuple[str, str]], labels: Sequence[str], keys: Iterable[str]) -> None:
        """Begin to count the faults of each method and route, and of requests without a route; the labels of the model
        (classes,); and the names of keys.
        """
        for method, route in (*routes, *((method, "unmatched") for method in METHODS)):
            self._requests.labels(method, route, "500")
        # Those behind the first MAX_LABELS of the model count together: all replicas count under the same names.
        names = [*labels[:MAX_LABELS], *[OTHER_LABELS] * len(labels[MAX_LABELS:])]
        self._top_labels = [self._images_by_label.labels(name) for name in names]
        for key in keys:
            self._key_requests.labels(key)

    def request_ended(
        self, *, method: str, route: str, status: int, seconds: float, problem: str | None, key: str | None
    ) -> None:
        """`route` is the path's template: clients can make up any number of paths. `key` is the name of the key."""
        self.in_flight.dec()
        self._requests.labels(method if method in METHODS else "OTHER", route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)
        if problem:
            self._problems.labels(problem).inc()
        if key:
            self._key_requests.labels(key).inc()

    def answered(self, index: int, score: float) -> None:
        """The class of an image's most likely label, and its score. Belongs to the event loop, after `expect`."""
        self._top_labels[index].inc()
        self._top_scores.observe(score)

    def stage(self, stage: Stage, seconds: float) -> None:
        self._stages[stage].observe(seconds)

    def batch(self, graph: str, images: int) -> None:
        self._batches.labels(graph).observe(images)

    def exposition(self) -> bytes:
        """All metrics in Prometheus's text format."""
        return generate_latest(self.registry)


class DroppedLines(Collector):
    def collect(self) -> Iterator[CounterMetricFamily]:
        yield CounterMetricFamily("vit_log_lines_dropped", "Log lines that nothing read", value=dropped_lines())


class CpuSeconds(Collector):
    """Processor time of this process and of those that `others` numbers.

    What one that has ended has taken still counts, but for the time since the last look: Prometheus would take a number
    that falls for a restart.
    """

    def __init__(self) -> None:
        self.others: Callable[[], Iterable[int]] = tuple
        self._of_others = 0.0
        self._last: dict[int, float] = {}  # of each of the others

    def collect(self) -> Iterator[CounterMetricFamily]:
        now = {process: cpu_seconds(process) for process in self.others()}
        self._of_others += sum(max(seconds - self._last.get(process, 0.0), 0.0) for process, seconds in now.items())
        self._last = now
        seconds = process_time() + self._of_others
        yield CounterMetricFamily("vit_cpu_seconds", "Processor time of the service and its decoders", value=seconds)


async def watch_event_loop(observe: Callable[[float], None]) -> None:
    """Call `observe` four times a second with the seconds that the event loop was late. Runs until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + LOOP_INTERVAL_S
        await asyncio.sleep(LOOP_INTERVAL_S)
        observe(max(loop.time() - due, 0.0))
