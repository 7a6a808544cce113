"""app/inference/runner.py with a batcher, against a model that can be held and watched."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import cycle
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from app.errors import InferenceFailed, Overloaded, Unavailable
from app.inference.batcher import Batcher
from app.inference.engine import GRAPHS, Plan
from app.inference.known_answer import WrongAnswer
from app.inference.runner import BROKEN, WRONG, Runner
from app.lifecycle import Lifecycle
from app.machine import MODEL_NICENESS
from tests.support.processes import eventually

NOT_FINITE = 200  # the pixel of an image for which the output is NaN
POISON = 13  # the pixel of one that fails, where a test says so


class FakeModel:
    """Answers each image with its first pixel; `gate` holds it in a run, `faults` make it fail."""

    def __init__(self, largest: int = 4, streams: int = 1) -> None:
        self.largest = largest
        self.streams = SimpleNamespace(count=streams, images=(1, 4))
        self.streams_open: set[int] = set()
        self.scale = np.float32(1)
        self.batches: list[tuple[str, list[int]]] = []
        self.threads: set[int] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.faults: dict[int, Exception] = {}  # by the pixel of the image that causes it
        self.fits = 1000  # images; there is no memory for more
        self.self_tests = cycle(GRAPHS)
        self.probes: list[str] = []  # graphs
        self.broken: Exception | None = None  # what the known image finds
        self.met: threading.Barrier | None = None  # of streams: as many runs have to be under way

    def opened(self):
        self.threads.add(threading.get_ident())
        return self

    def open_streams(self, images):
        if self.broken:
            self.streams.count = 1
        else:
            self.streams_open.add(images)
        return not self.broken

    def plan(self, graph, waiting, *, others, running):
        if self.streams.count > 1:
            images = 4 if 4 in self.streams_open and waiting >= 4 else 1
            if images in self.streams_open and waiting + others + len(running) > 1:
                return Plan(graph, images, self)
            return None if running else Plan(graph, 1)
        return None if running else Plan(graph, min(waiting, self.largest))

    def split(self, plan, images):
        return Plan(plan.graph, 1, self) if plan.streamed else Plan(plan.graph, min(images, self.largest))

    def expected(self, plan):
        return 0.0

    def forbid(self, graph, images):
        self.largest = max(images // 2, 1)
        return self.largest

    def allows(self, plan):
        return plan.images <= self.largest

    def next_self_test(self):
        return Plan(next(self.self_tests), 1)

    def probe(self, plan):
        self.probes.append(plan.graph)
        if self.broken:
            raise self.broken

    def run(self, plan, images):
        images = np.stack(images)
        self.threads.add(threading.get_ident())
        pixels = images[:, 0, 0, 0].tolist()
        self.batches.append((plan.graph, pixels))
        self.entered.set()
        assert self.gate.wait(10)
        if plan.streamed and self.met:
            self.met.wait(10)
        if len(images) > self.fits:
            raise MemoryError
        for pixel in pixels:
            if pixel in self.faults:
                raise self.faults[pixel]
        logits = images[:, 0, 0, :1].astype(np.float32) * self.scale
        logits[logits == NOT_FINITE] = np.nan
        return {"logits": logits}


def image(value: int) -> np.ndarray:
    return np.full((2, 2, 3), value, dtype=np.uint8)


@pytest.fixture
def model() -> FakeModel:
    return FakeModel()


@asynccontextmanager
async def running(model: FakeModel, lifecycle: Lifecycle) -> AsyncIterator[Batcher]:
    """The batcher of a runner, `model.runner`, which is stopped afterwards."""
    runner = model.runner = Runner(batcher=Batcher(), lifecycle=lifecycle)
    assert runner.start(model.opened) is model
    try:
        yield runner.batcher
    finally:
        model.gate.set()
        await asyncio.to_thread(runner.stop)
        assert not any(thread.is_alive() for thread in runner._threads)


def start_all(batcher, *values):
    return [asyncio.ensure_future(batcher.run("classify", image(value))) for value in values]


async def held(model, batcher):
    """Occupy the model, so that what follows has to wait."""
    model.gate.clear()
    (first,) = start_all(batcher, 0)
    await asyncio.to_thread(model.entered.wait, 10)
    return first


async def test_images_that_wait_for_streams_are_run_side_by_side(lifecycle):
    model = FakeModel(streams=2)
    both_run = threading.Barrier(2)
    async with running(model, lifecycle) as batcher:
        first = await held(model, batcher)
        assert not model.streams_open  # for a single image they would only take memory
        rest = start_all(batcher, 1, 2, 3, 4)
        await asyncio.to_thread(eventually, lambda: model.streams_open)
        model.met = both_run
        model.gate.set()
        answers = await asyncio.gather(first, *rest)
    assert [answer["logits"].tolist() for answer in answers] == [[0], [1], [2], [3], [4]]
    assert all(len(pixels) == 1 for _, pixels in model.batches)
    assert both_run.broken is False
    assert len(model.threads) == 2


@pytest.mark.parametrize(("fits", "alone"), [(4, 1), (3, 9)])
async def test_a_run_on_a_stream_has_several_images_if_there_is_memory_for_them(lifecycle, fits, alone):
    model = FakeModel(streams=2)
    async with running(model, lifecycle) as batcher:
        first = await held(model, batcher)
        rest = start_all(batcher, *range(1, 9))
        await asyncio.to_thread(eventually, lambda: model.streams_open == {1, 4})
        model.fits = fits
        model.gate.set()
        answers = await asyncio.gather(first, *rest)
    assert [answer["logits"].tolist() for answer in answers] == [[value] for value in range(9)]
    sizes = [len(pixels) for _, pixels in model.batches]
    assert set(sizes) == {1, 4}
    assert sizes.count(1) == alone


async def test_streams_that_do_not_open_leave_one_run_at_a_time(lifecycle):
    model = FakeModel(streams=2)
    model.broken = RuntimeError("no memory")
    async with running(model, lifecycle) as batcher:
        first = await held(model, batcher)
        rest = start_all(batcher, 1, 2)
        await asyncio.to_thread(eventually, lambda: model.streams.count == 1)
        model.gate.set()
        await asyncio.gather(first, *rest)
    assert model.batches == [("classify", [0]), ("classify", [1, 2])]
    assert lifecycle.reason is None


def test_start_raises_what_opening_the_engine_raises():
    runner = Runner(batcher=Batcher(), lifecycle=Lifecycle())
    with pytest.raises(OSError, match="no weights"):
        runner.start(Mock(side_effect=OSError("no weights")))
    runner.stop()


NICENESS = """
import os, sys
from pathlib import Path
from app.bundle import load_bundle
from app.inference.batcher import Batcher
from app.inference.device import open_model
from app.inference.runner import Runner
from app.lifecycle import Lifecycle
from app.settings import Settings
settings = Settings(device="cpu", engine=sys.argv[1], model_threads=2)
runner = Runner(batcher=Batcher(), lifecycle=Lifecycle())
before = set(os.listdir("/proc/self/task"))
runner.start(lambda: open_model(settings=settings, bundle=load_bundle(settings.bundle)))
of_engine = set(os.listdir("/proc/self/task")) - before
fields = [Path(f"/proc/self/task/{task}/stat").read_text().rpartition(")")[2].split() for task in of_engine]
print(len(of_engine), {int(field[16]) for field in fields})
runner.stop()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a priority of their own on Linux alone")
@pytest.mark.parametrize("kind", ["openvino", "onnxruntime"])
def test_all_threads_of_an_engine_yield_to_answers(kind):
    done = subprocess.run([sys.executable, "-c", NICENESS, kind], capture_output=True, text=True, check=True)
    count, niceness = done.stdout.split(maxsplit=1)
    assert int(count) >= 2
    assert niceness.strip() == str({os.nice(0) + MODEL_NICENESS})


async def together(model, batcher, *values):
    """The results of the images of one batch, each a number or an exception."""
    first = await held(model, batcher)
    rest = start_all(batcher, *values)
    await asyncio.sleep(0)
    model.gate.set()
    answers = await asyncio.gather(*rest, return_exceptions=True)
    await asyncio.wait([first])
    return [one if isinstance(one, Exception) else int(one["logits"][0]) for one in answers]


@pytest.mark.parametrize(
    ("bad", "again"), [(POISON, [[1], [POISON], [3], [4]]), (NOT_FINITE, [])], ids=["an exception", "NaN"]
)
async def test_of_a_failed_batch_only_the_image_that_causes_it_fails(model, lifecycle, caplog, bad, again):
    model.faults[POISON] = RuntimeError("poison")
    async with running(model, lifecycle) as batcher:
        answers = await together(model, batcher, 1, bad, 3, 4)
    assert isinstance(answers.pop(1), InferenceFailed)
    assert answers == [1, 3, 4]
    assert model.batches[1:] == [("classify", values) for values in ([1, bad, 3, 4], *again)]
    assert len(model.probes) == 1
    assert lifecycle.reason is None
    assert ("NaN or infinity for 1 of 4 images" in caplog.text) == (bad == NOT_FINITE)


async def test_finite_numbers_with_an_infinite_sum_are_answered(model, lifecycle):
    model.scale = np.float32(2e38)
    async with running(model, lifecycle) as batcher:
        assert await together(model, batcher, 1, 1, 1) == [pytest.approx(2e38)] * 3
    assert model.probes == []


async def test_when_memory_is_short_batches_stay_smaller_and_all_images_are_answered(model, lifecycle):
    """The rest of a batch that was too large too."""
    model.largest, model.fits = 8, 2
    async with running(model, lifecycle) as batcher:
        assert await together(model, batcher, *range(8)) == [*range(8)]
        model.entered.clear()
        assert await together(model, batcher, 8, 9, 10) == [8, 9, 10]
    sizes = [len(batch) for _, batch in model.batches]
    assert sizes == [1, 8, 4, 2, 2, 2, 2, 1, 2, 1]
    assert lifecycle.reason is None


async def test_a_single_image_without_memory_is_overloaded(model, lifecycle):
    model.fits = 0
    async with running(model, lifecycle) as batcher:
        (answer,) = await together(model, batcher, 1)
    assert isinstance(answer, Overloaded)
    assert len(model.probes) == 2
    assert lifecycle.reason is None


@pytest.mark.parametrize(
    ("fault", "broken", "reason"),
    [
        (RuntimeError("CUDA failure 700: an illegal memory access"), None, BROKEN),
        (RuntimeError("?"), RuntimeError("the known image fails too"), BROKEN),
        (SystemExit(), None, BROKEN),
        (WrongAnswer("in a batch size used for the first time"), None, WRONG),
        (RuntimeError("?"), WrongAnswer("after an image that fails"), WRONG),
    ],
    ids=repr,
)
async def test_a_broken_engine_fails_the_service_and_all_waiting_images(
    model, lifecycle, caplog, fault, broken, reason
):
    model.largest = 2
    model.faults[POISON], model.broken = fault, broken
    failures = []
    lifecycle.when_failed(lambda: failures.append(threading.current_thread().name))
    async with running(model, lifecycle) as batcher:
        answers = await together(model, batcher, POISON, 1, 2, 3)
        with pytest.raises(Unavailable, match=reason):
            await batcher.run("classify", image(9))
    assert [type(answer) for answer in answers[1:]] == [Unavailable] * 3
    assert lifecycle.failure == reason
    assert failures == ["engine"]
    assert str(broken or fault) in caplog.text


async def test_a_run_that_does_not_end_within_a_minute_of_checks_fails_the_service(model, lifecycle):
    """Checks are counted and no clock is read: a pause of the machine is no hang."""
    async with running(model, lifecycle) as batcher:
        check = model.runner.check
        check()
        first = await held(model, batcher)
        (waits,) = start_all(batcher, 1)
        await asyncio.sleep(0)
        for _ in range(60):
            check()
        assert lifecycle.failure is None
        check()
        assert lifecycle.failure is not None
        answers = await asyncio.gather(first, waits, return_exceptions=True)
        assert [type(answer) for answer in answers] == [Unavailable, Unavailable]
    assert model.batches == [("classify", [0])]


async def test_an_idle_engine_tests_itself_with_each_graph_in_turn(model, lifecycle, monkeypatch):
    monkeypatch.setattr("app.inference.batcher.SELF_TEST_S", 0.01)
    async with running(model, lifecycle):
        await asyncio.to_thread(eventually, lambda: set(model.probes) == set(GRAPHS))
        assert lifecycle.reason is None
        model.broken = WrongAnswer("logits differ")
        await asyncio.to_thread(eventually, lambda: lifecycle.failure == WRONG)
