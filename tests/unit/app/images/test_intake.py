"""app/images/intake.py: an image's way through real processes, and the error for one that made a process fail."""

import asyncio
import os
import signal
from functools import partial
from io import BytesIO
from unittest.mock import Mock

import numpy as np
import pytest
from PIL import Image

from app.errors import Overloaded, UnusableImage
from app.images import pool as pool_module
from app.images.intake import Intake, open_intake
from app.images.messages import unpack_answer
from app.images.pool import WorkerPool
from app.images.preprocess import Prepared
from app.images.quarantine import Quarantine
from app.images.upload import Upload
from app.settings import Settings
from tests.support.processes import eventually
from tests.support.saboteur import CRASH, GARBLE, PAUSE, SPIN, ForkUnlessFull, Saboteur
from tests.support.specs import preparer_of, spec_of
from tests.support.worker_pool import started

LARGE = (2001, 2000)
PREPARER = preparer_of(spec_of((8, 8)))
UNPACK = partial(unpack_answer, shape=(8, 8))


@pytest.fixture(scope="module")
def pool():
    with started(Saboteur(PREPARER), timeout_s=3, unpack=UNPACK) as pool:
        yield pool


def intake_of(pool: WorkerPool) -> Intake:
    quarantine = Quarantine(ttl_s=100, max_items=10)
    pool.on_hang = quarantine.add
    return Intake(pool=pool, quarantine=quarantine, max_memory=0, thumbnail_px=64)


@pytest.fixture
def intake(pool):
    return intake_of(pool)


@pytest.fixture
def prepare(intake):
    async def prepare(*images):
        preparing = (intake.prepare(Upload(data), thumbnail=True) for data in images)
        return await asyncio.gather(*preparing, return_exceptions=True)

    return prepare


def processes(pool: WorkerPool) -> list[int]:
    return [worker.process for worker in pool._workers]


@pytest.mark.parametrize(("end", "words"), [(CRASH, "crashed"), (GARBLE, "crashed"), (SPIN, "too long")])
async def test_an_image_that_breaks_its_worker_is_refused_and_the_others_are_not(pool, prepare, star, end, words):
    """Its worker is ended, and the next time it gets to none."""
    before = processes(pool)
    first, broken, last = await prepare(star, star + end, star)
    assert first.format == last.format == "JPEG"
    assert isinstance(broken, UnusableImage)
    assert words in broken.detail
    await prepare(star, star)
    assert set(before) - {*(after := processes(pool))}
    (refused,) = await prepare(star + end)
    assert "a moment ago" in refused.detail
    assert processes(pool) == after


async def test_an_image_that_hangs_is_remembered_even_if_its_caller_has_left(star):
    with started(Saboteur(PREPARER), timeout_s=0.3, unpack=UNPACK) as pool:
        intake = intake_of(pool)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await intake.prepare(Upload(star + SPIN), thumbnail=True)
        while not await intake.quarantine.holds(Upload(star + SPIN)):
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(("times", "outcome"), [(1, Prepared), (2, Overloaded)])
async def test_an_image_whose_workers_are_killed_from_outside_is_tried_once_more_and_not_to_blame(
    pool, prepare, star, times, outcome
):
    victims = set()
    preparing = asyncio.ensure_future(prepare(star + PAUSE))
    while len(victims) < times:
        await asyncio.sleep(0.01)
        assert not preparing.done()
        busy = next((worker for worker in pool._workers if worker not in pool._idle), None)
        if busy and busy.process not in victims and busy.connection:  # none is busy between a death and the retry
            await asyncio.sleep(0.2)
            victims.add(busy.process)
            os.kill(busy.process, signal.SIGKILL)
    (answer,) = await preparing
    assert isinstance(answer, outcome), answer
    (again,) = await prepare(star + PAUSE)
    assert again.format == "JPEG"


async def test_a_killed_fork_server_costs_no_image(pool, prepare, star):
    preparing = asyncio.ensure_future(prepare(*[star + PAUSE] * 2))
    await asyncio.sleep(0.3)
    os.kill(pool._fork_server._process.pid, signal.SIGKILL)
    assert [type(answer) for answer in await preparing] == [Prepared, Prepared]


async def test_a_worker_that_cannot_be_replaced_costs_no_image(star, tmp_path):
    full = tmp_path / "full"
    with started(ForkUnlessFull(PREPARER, full), unpack=UNPACK) as pool:
        intake = intake_of(pool)
        await intake.prepare(Upload(star), thumbnail=True)
        full.touch()
        process = pool._idle[-1].process  # the next to be asked
        os.kill(process, signal.SIGKILL)
        eventually(lambda: not pool._idle[-1].is_ready(), seconds=20)
        prepared = [(await intake.prepare(Upload(star), thumbnail=True)).format for _ in range(3)]
        assert prepared == ["JPEG"] * 3
        full.unlink()
        pool._renew(next(worker for worker in pool._workers if not worker.is_ready()))
        assert all(worker.is_ready() for worker in pool._workers)


async def test_when_no_worker_can_be_started_the_service_is_overloaded(prepare, star, pool, monkeypatch):
    await prepare(star)
    for process in processes(pool):
        os.kill(process, signal.SIGKILL)
    eventually(lambda: not any(worker.is_ready() for worker in pool._workers), seconds=20)
    monkeypatch.setattr(pool, "_renew", Mock(side_effect=BlockingIOError))
    assert Overloaded in {type(answer) for answer in await prepare(star, star, star, star)}
    monkeypatch.undo()
    assert {type(answer) for answer in await prepare(star, star, star)} == {Prepared}


@pytest.fixture
def uploads_sent(monkeypatch):
    """The bytes of each upload that is sent to a worker."""
    sent = []
    send = pool_module._send

    async def counted(connection, header, upload):
        if len(upload):
            sent.append(len(upload))
        await send(connection, header, upload)

    monkeypatch.setattr(pool_module, "_send", counted)
    return sent


async def test_a_large_image_is_sent_once_and_counts_by_its_pixels(prepare, encode, pool, monkeypatch, uploads_sent):
    grown = []
    monkeypatch.setattr(pool.lanes, "grow", lambda pixels, grow=pool.lanes.grow: grown.append(pixels) or grow(pixels))
    small, large = (encode(Image.new("RGB", size)) for size in ((2000, 2000), LARGE))
    assert [done.size for done in (*await prepare(small), *await prepare(large))] == [(2000, 2000), LARGE]
    assert uploads_sent == [len(small), len(large)]
    assert grown == [2001 * 2000]
    assert pool.lanes._free_pixels == 5_000_000


async def test_a_large_image_that_has_to_wait_for_another_is_sent_again(prepare, encode, pool, uploads_sent):
    large = encode(Image.new("RGB", LARGE))
    await pool.lanes.enter(2_000_000)  # as another large image
    preparing = asyncio.ensure_future(prepare(large))
    while not pool.lanes._waiting:
        await asyncio.sleep(0.01)
    pool.lanes.leave(2_000_000)
    assert (await preparing)[0].size == LARGE
    assert uploads_sent == [len(large)] * 2
    assert pool.lanes._free_pixels == 5_000_000


@pytest.mark.parametrize(
    ("cores", "gibibytes", "options", "workers", "megapixels"),  # the last: of all images that are being decoded
    [
        (2, 2, {}, 2, 8 + 2**29 / 12e6),  # two small images, and as many large ones as a quarter of it holds
        (2, 64, {}, 2, 8 + 50),  # of large ones no more than one: the other worker is left to small ones
        (2, 64, {"max_image_pixels": 5_000_000}, 2, 8 + 5),
        (64, 64, {}, 64, 64 * 4 + 2**34 / 12e6),
        (64, 2, {}, 11, 11 * 4 + 2**29 / 12e6),
        (64, 2, {"decode_workers": 64}, 64, 11 * 4 + 2**29 / 12e6),
        (1, 0.125, {}, 2, 4 + 2**25 / 12e6),
    ],
)
def test_decoders_fit_the_memory_and_not_only_the_cores(monkeypatch, cores, gibibytes, options, workers, megapixels):
    monkeypatch.setattr("app.images.intake.allowed_cores", lambda: cores)
    monkeypatch.setattr("app.images.intake.allowed_memory", lambda: int(gibibytes * 2**30))
    intake = open_intake(settings=Settings(**options), spec=PREPARER.spec)
    assert len(intake.pool._workers) == workers
    assert intake.max_memory == pytest.approx(megapixels * 12e6, rel=1e-6)


def test_the_largest_answer_fits_its_limit(encode):
    """Noise is what JPEG makes the least of."""
    spec, thumbnail_px = spec_of((64, 64)), 512
    noise = Image.fromarray(np.random.default_rng(1).integers(0, 256, (512, 512, 3), dtype=np.uint8))
    answer = preparer_of(spec, thumbnail_px=thumbnail_px)(encode(noise), even_large=True, thumbnail=True)
    pool = open_intake(settings=Settings(thumbnail_px=thumbnail_px), spec=spec).pool
    assert 0.2 * pool.max_answer_bytes < len(answer) < pool.max_answer_bytes


@pytest.mark.parametrize("thumbnail", [True, False])
async def test_pixels_of_the_right_size_need_no_decoder(thumbnail):
    intake = open_intake(settings=Settings(thumbnail_px=64), spec=spec_of((80, 120)))
    pixels = np.random.default_rng(0).integers(0, 256, (80, 120, 3), dtype=np.uint8)
    prepared = await intake.accept(pixels, thumbnail=thumbnail)
    assert prepared.pixels is pixels
    assert (prepared.size, prepared.box, prepared.format) == ((120, 80), (0, 0, 120, 80), "pixels")
    if thumbnail:
        with Image.open(BytesIO(prepared.thumbnail)) as image:
            assert image.size == (64, 43)
    else:
        assert prepared.thumbnail == b""
