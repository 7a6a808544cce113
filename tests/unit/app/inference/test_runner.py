"""app/inference/runner.py with a batcher and a model, on an engine that can be held and watched."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest.mock import Mock

import numpy as np
import pytest

from app.bundle import GRAPHS
from app.errors import InferenceFailed, Overloaded, Unavailable
from app.inference.batcher import Batcher
from app.inference.engine import Engine
from app.inference.known_answer import WrongAnswer
from app.inference.model import Model
from app.inference.runner import BROKEN, WRONG, Runner
from app.lifecycle import Lifecycle
from app.machine import MODEL_NICENESS

NOT_FINITE = 200  # the pixel of an image for which the output is NaN
POISON = 13  # the pixel of one that fails, where a test says so
KNOWN = 255  # the pixel of the known image


class FakeEngine(Engine):
    """Answers each image with its first pixel; `gate` holds it in a run, `faults` make it fail."""

    provider = "fake"

    layout = dict.fromkeys(GRAPHS, ())

    def __init__(self) -> None:
        self.scale = np.float32(1)
        self.batches: list[tuple[str, list[int]]] = []
        self.threads: set[int] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.faults: dict[int, Exception] = {}  # by the pixel of the image that causes it
        self.fits = 1000  # images; there is no memory for more
        self.probes: list[str] = []  # graphs
        self.broken: Exception | None = None  # what the known image finds
        self.largest = 4  # images of a batch
        self.met: threading.Barrier | None = None  # as many runs have to be under way

    def warm_up(self, check):
        for graph in GRAPHS:
            check(graph, self.largest)
        self.probes.clear()

    def run(self, graph, images, asked=(), *, beside=False):
        images = np.stack(images)
        pixels = images[:, 0, 0, 0].tolist()
        if KNOWN in pixels:
            self.probes.append(graph)
            if self.broken:
                raise self.broken
        else:
            self._run(graph, pixels)
        logits = images[:, 0, 0, :1].astype(np.float32) * self.scale
        logits[logits == NOT_FINITE] = np.nan
        return {"logits": logits}

    def _run(self, graph, pixels):
        self.threads.add(threading.get_ident())
        self.batches.append((graph, pixels))
        if self.met:
            self.met.wait(10)
        self.entered.set()
        assert self.gate.wait(10)
        if len(pixels) > self.fits:
            raise MemoryError
        for pixel in pixels:
            if pixel in self.faults:
                raise self.faults[pixel]


def image(value: int) -> np.ndarray:
    return np.full((2, 2, 3), value, dtype=np.uint8)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@asynccontextmanager
async def running(engine: FakeEngine, lifecycle: Lifecycle) -> AsyncIterator[Runner]:
    """A runner on this engine, which is stopped afterwards."""
    runner = Runner(batcher=Batcher(), lifecycle=lifecycle)
    known = Mock(inputs=lambda count: ([image(KNOWN)] * count, ()))

    def open_model() -> Model:
        engine.threads.add(threading.get_ident())
        model = Model(engine=engine, known=known)
        model.warm_up()
        return model

    runner.start(open_model)
    try:
        yield runner
    finally:
        engine.gate.set()
        await asyncio.to_thread(runner.stop)
        assert not any(thread.is_alive() for thread in runner._threads)


def start_all(runner, *values):
    return [asyncio.ensure_future(runner.batcher.run("classify", image(value))) for value in values]


async def held(engine, runner):
    """Occupy the engine, so that what follows has to wait."""
    engine.gate.clear()
    (first,) = start_all(runner, 0)
    await asyncio.to_thread(engine.entered.wait, 10)
    return first


async def test_images_that_wait_are_run_side_by_side(engine, lifecycle):
    engine.side_by_side, engine.largest = 2, 1
    async with running(engine, lifecycle) as runner:
        first = await held(engine, runner)
        rest = start_all(runner, 1, 2, 3, 4)
        await asyncio.sleep(0)
        engine.met = threading.Barrier(2)
        engine.gate.set()
        answers = await asyncio.gather(first, *rest)
    assert [answer["logits"].tolist() for answer in answers] == [[0], [1], [2], [3], [4]]
    assert all(len(pixels) == 1 for _, pixels in engine.batches)
    assert not engine.met.broken
    assert len(engine.threads) == 2


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


async def together(engine, runner, *values):
    """The results of the images of one batch, each a number or an exception."""
    first = await held(engine, runner)
    rest = start_all(runner, *values)
    await asyncio.sleep(0)
    engine.gate.set()
    _, *answers = await asyncio.gather(first, *rest, return_exceptions=True)
    return [one if isinstance(one, Exception) else int(one["logits"][0]) for one in answers]


@pytest.mark.parametrize(
    ("bad", "again"), [(POISON, [[1], [POISON], [3], [4]]), (NOT_FINITE, [])], ids=["an exception", "NaN"]
)
async def test_of_a_failed_batch_only_the_image_that_causes_it_fails(engine, lifecycle, caplog, bad, again):
    engine.faults[POISON] = RuntimeError("poison")
    async with running(engine, lifecycle) as runner:
        answers = await together(engine, runner, 1, bad, 3, 4)
    assert isinstance(answers.pop(1), InferenceFailed)
    assert answers == [1, 3, 4]
    assert engine.batches[1:] == [("classify", values) for values in ([1, bad, 3, 4], *again)]
    assert len(engine.probes) == 1
    assert lifecycle.reason is None
    assert ("NaN or infinity for 1 of 4 images" in caplog.text) == (bad == NOT_FINITE)


async def test_finite_numbers_with_an_infinite_sum_are_answered(engine, lifecycle):
    async with running(engine, lifecycle) as runner:
        engine.scale = np.float32(2e38)
        assert await together(engine, runner, 1, 1, 1) == [pytest.approx(2e38)] * 3
    assert engine.probes == []


async def test_a_single_image_without_memory_is_overloaded(engine, lifecycle):
    engine.fits = 0
    async with running(engine, lifecycle) as runner:
        (answer,) = await together(engine, runner, 1)
    assert isinstance(answer, Overloaded)
    assert len(engine.probes) == 2
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
    engine, lifecycle, caplog, fault, broken, reason
):
    failures = []
    lifecycle.when_failed(lambda: failures.append(threading.current_thread().name))
    engine.largest = 2
    async with running(engine, lifecycle) as runner:
        engine.faults[POISON], engine.broken = fault, broken
        answers = await together(engine, runner, POISON, 1, 2, 3)
        with pytest.raises(Unavailable, match=reason):
            await runner.batcher.run("classify", image(9))
    assert [type(answer) for answer in answers[1:]] == [Unavailable] * 3
    assert lifecycle.failure == reason
    assert failures == ["engine"]
    assert str(broken or fault) in caplog.text


async def test_a_run_that_does_not_end_within_a_minute_of_checks_fails_the_service(engine, lifecycle):
    """Checks are counted and no clock is read: a pause of the machine is not a hang."""
    async with running(engine, lifecycle) as runner:
        check = runner.check
        check()
        first = await held(engine, runner)
        (waits,) = start_all(runner, 1)
        await asyncio.sleep(0)
        for _ in range(60):
            check()
        assert lifecycle.failure is None
        check()
        assert lifecycle.failure is not None
        answers = await asyncio.gather(first, waits, return_exceptions=True)
        assert [type(answer) for answer in answers] == [Unavailable, Unavailable]
    assert engine.batches == [("classify", [0])]
