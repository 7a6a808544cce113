"""app/images/intake.py: what becomes of an upload on which workers fail, and how many images are decoded at a time."""

import asyncio
from io import BytesIO
from unittest.mock import AsyncMock, Mock

import numpy as np
import pytest
from PIL import Image

from app.errors import Overloaded, UnusableImage
from app.images.intake import BYTES_PER_PIXEL, Intake, open_intake
from app.images.messages import GarbledAnswer
from app.images.pool import WorkerFailed, WorkerKilled, WorkerTimedOut
from app.images.preparer import THUMBNAIL_PX
from app.images.upload import Upload
from app.settings import Settings
from tests.support.specs import preparer_of, spec_of

PREPARED = object()


@pytest.fixture
def intake() -> Intake:
    return Intake(pool=Mock(), thumbnail_px=64)


async def prepare(intake: Intake, *answers: object) -> object:
    """What is returned or raised for an upload that workers answer so, one after the other."""
    intake.pool.run = AsyncMock(side_effect=answers)
    (outcome,) = await asyncio.gather(intake.prepare(Upload(b"x"), thumbnail=True), return_exceptions=True)
    return outcome


@pytest.mark.parametrize("failure", [WorkerFailed, WorkerKilled, OSError])
async def test_others_are_tried_where_a_worker_fails(intake, failure):
    assert await prepare(intake, failure, failure, PREPARED) is PREPARED
    assert await prepare(intake, PREPARED) is PREPARED


@pytest.mark.parametrize(
    ("failures", "refusal", "words"),
    [
        ([WorkerFailed] * 3, UnusableImage, "the decoder crashed on it"),
        ([GarbledAnswer], UnusableImage, "the decoder crashed on it"),
        ([WorkerTimedOut], UnusableImage, "takes too long"),
        ([WorkerFailed, WorkerTimedOut], UnusableImage, "takes too long"),
        ([WorkerFailed, WorkerKilled, WorkerFailed], Overloaded, "No image can be decoded at the moment"),
        ([OSError] * 3, Overloaded, "No image can be decoded at the moment"),
    ],
)
async def test_an_image_is_to_blame_only_where_all_workers_crash_by_themselves(intake, failures, refusal, words):
    refused = await prepare(intake, *failures)
    assert isinstance(refused, refusal)
    assert words in refused.detail
    assert await prepare(intake, PREPARED) is PREPARED  # nothing is remembered of it


@pytest.mark.parametrize(
    ("cores", "gibibytes", "options", "workers"),
    [(2, 2, {}, 2), (64, 64, {}, 64), (64, 2, {}, 11), (64, 2, {"decode_workers": 64}, 64), (1, 0.125, {}, 2)],
)
def test_decoders_fit_the_memory_and_not_only_the_cores(monkeypatch, cores, gibibytes, options, workers):
    monkeypatch.setattr("app.images.intake.allowed_cores", lambda: cores)
    monkeypatch.setattr("app.images.intake.allowed_memory", lambda: int(gibibytes * 2**30))
    pool = open_intake(settings=Settings(**options), spec=spec_of((8, 8))).pool
    assert pool.turns.workers == workers
    assert pool.turns._max_pixels * BYTES_PER_PIXEL == pytest.approx(gibibytes * 2**28, rel=1e-6)


def test_no_image_has_longer_sides_whatever_the_limit():
    assert open_intake(settings=Settings(max_image_pixels=10**30), spec=spec_of((8, 8))).pool.max_pixels == 2**28


def test_the_largest_answer_fits_its_limit(encode):
    """Noise is what JPEG makes the least of."""
    spec = spec_of((64, 64))
    noise = Image.fromarray(np.random.default_rng(1).integers(0, 256, (THUMBNAIL_PX, THUMBNAIL_PX, 3), dtype=np.uint8))
    answer = preparer_of(spec, thumbnail_px=THUMBNAIL_PX)(encode(noise), THUMBNAIL_PX**2, True)
    pool = open_intake(settings=Settings(), spec=spec).pool
    assert 0.2 * pool.max_answer_bytes < len(answer) < pool.max_answer_bytes


@pytest.mark.parametrize("thumbnail", [True, False])
async def test_pixels_of_the_right_size_need_no_decoder(thumbnail):
    intake = Intake(pool=Mock(), thumbnail_px=64)
    pixels = np.random.default_rng(0).integers(0, 256, (80, 120, 3), dtype=np.uint8)
    prepared = await intake.prepare_pixels(pixels, thumbnail=thumbnail)
    assert prepared.pixels is pixels
    assert (prepared.size, prepared.box, prepared.format) == ((120, 80), (0, 0, 120, 80), "pixels")
    if thumbnail:
        with Image.open(BytesIO(prepared.thumbnail)) as image:
            assert image.size == (60, 40)
    else:
        assert prepared.thumbnail == b""
