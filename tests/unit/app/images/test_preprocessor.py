"""app/images/preprocessor.py: what becomes of an upload on which workers fail, and how many are decoded at a time."""

import asyncio
import base64
from io import BytesIO
from unittest.mock import AsyncMock, Mock

import numpy as np
import pytest
from PIL import Image

from app.errors import MalformedRequest, Overloaded, UnusableImage
from app.images.json_body import image_in_base64
from app.images.messages import GarbledAnswer
from app.images.pool import WorkerFailed, WorkerKilled, WorkerTimedOut
from app.images.preparer import IMAGE_AND_THUMBNAIL, THUMBNAIL_PX
from app.images.preprocessor import BYTES_PER_PIXEL, MAX_JSON_HERE_BYTES, Preprocessor, open_preprocessor
from app.images.upload import Upload
from app.settings import Settings
from tests.support import worker_pool
from tests.support.saboteur import CRASH, SPIN, Saboteur, claim
from tests.support.specs import preparer_of, spec_of

PREPARED = object()


@pytest.fixture
def preprocessor() -> Preprocessor:
    return Preprocessor(pool=Mock(), size=(8, 8), max_pixels=1000, thumbnail_px=64)


async def prepare(preprocessor: Preprocessor, *answers: object) -> object:
    """What is returned or raised for an upload that workers answer so, one after the other."""
    preprocessor.pool.run = AsyncMock(side_effect=answers)
    (outcome,) = await asyncio.gather(preprocessor.prepare(Upload([b"x"]), thumbnail=True), return_exceptions=True)
    return outcome


@pytest.mark.parametrize("failure", [WorkerFailed, WorkerKilled, OSError])
async def test_others_are_tried_where_a_worker_fails(preprocessor, failure):
    assert await prepare(preprocessor, failure, failure, PREPARED) is PREPARED
    assert await prepare(preprocessor, PREPARED) is PREPARED


@pytest.mark.parametrize(
    ("failures", "refusal", "words"),
    [
        ([WorkerFailed] * 3, UnusableImage, "the decoder crashed on it"),
        ([GarbledAnswer], UnusableImage, "the decoder crashed on it"),
        ([WorkerTimedOut], UnusableImage, "takes too long"),
        ([WorkerFailed, WorkerTimedOut], UnusableImage, "takes too long"),
        ([WorkerFailed, WorkerKilled, WorkerFailed], Overloaded, "Nothing can be decoded at the moment"),
        ([OSError] * 3, Overloaded, "Nothing can be decoded at the moment"),
    ],
)
async def test_an_image_is_to_blame_only_where_all_workers_crash_by_themselves(preprocessor, failures, refusal, words):
    refused = await prepare(preprocessor, *failures)
    assert isinstance(refused, refusal)
    assert words in refused.detail
    assert await prepare(preprocessor, PREPARED) is PREPARED  # nothing is remembered of it


async def test_an_image_may_cost_what_the_pixels_that_it_claims_may_unless_it_is_too_large(preprocessor):
    preprocessor.pool.run = AsyncMock()
    for size in ((20, 50), (21, 50)):
        await preprocessor.prepare(Upload([claim(*size)]), thumbnail=False)
    assert [call.args[0].pixels for call in preprocessor.pool.run.call_args_list] == [1000, 0]


async def test_json_is_read_by_a_worker_and_small_json_here():
    with worker_pool.started(Saboteur(preparer_of(spec_of((8, 8)))), workers=1) as pool:
        preprocessor = Preprocessor(pool=pool, size=(8, 8), max_pixels=1000, thumbnail_px=64)
        for size in (1, MAX_JSON_HERE_BYTES, 2_000_000):
            image = bytes(size)
            text = b'{"inputs":"%s", "top_k": 2}' % base64.b64encode(image)
            document = await preprocessor.read_json(Upload([text[:9], text[9:]]))
            found = document["inputs"]
            assert image == (image_in_base64(found) if isinstance(found, str) else found.read(0, size))
            assert document["top_k"] == 2
        with pytest.raises(MalformedRequest, match="is not JSON"):
            await preprocessor.read_json(Upload([bytes(MAX_JSON_HERE_BYTES + 1)]))
        for end, words in ((SPIN, "takes too long"), (CRASH, "crashed")):
            with pytest.raises(MalformedRequest, match=words):
                await preprocessor.read_json(Upload([bytes(MAX_JSON_HERE_BYTES) + end]))


@pytest.mark.parametrize(
    ("cores", "gibibytes", "options", "workers"),
    [(2, 2, {}, 2), (64, 64, {}, 64), (64, 2, {}, 11), (64, 2, {"decode_workers": 64}, 64), (1, 0.125, {}, 2)],
)
def test_decoders_fit_the_memory_and_not_only_the_cores(monkeypatch, cores, gibibytes, options, workers):
    monkeypatch.setattr("app.images.preprocessor.allowed_cores", lambda: cores)
    monkeypatch.setattr("app.images.preprocessor.allowed_memory", lambda: int(gibibytes * 2**30))
    pool = open_preprocessor(settings=Settings(**options), spec=spec_of((8, 8))).pool
    assert pool.turns.workers == workers
    assert pool.turns._max_pixels * BYTES_PER_PIXEL == pytest.approx(gibibytes * 2**28, rel=1e-6)


def test_no_image_has_longer_sides_whatever_the_limit():
    assert open_preprocessor(settings=Settings(max_image_pixels=10**30), spec=spec_of((8, 8))).max_pixels == 2**28


async def test_the_largest_answer_fits_its_limit(encode):
    """Noise is what JPEG makes the least of."""
    spec = spec_of((64, 64))
    noise = Image.fromarray(np.random.default_rng(1).integers(0, 256, (THUMBNAIL_PX, THUMBNAIL_PX, 3), dtype=np.uint8))
    answer = preparer_of(spec, thumbnail_px=THUMBNAIL_PX)(IMAGE_AND_THUMBNAIL, encode(noise), THUMBNAIL_PX**2)
    preprocessor = open_preprocessor(settings=Settings(), spec=spec)
    preprocessor.pool.run = AsyncMock()
    await preprocessor.prepare(Upload([encode(noise)]), thumbnail=True)
    limit = preprocessor.pool.run.call_args.args[0].max_answer_bytes
    assert 0.2 * limit < len(answer) < limit


@pytest.mark.parametrize("thumbnail", [True, False])
async def test_pixels_of_the_right_size_need_no_decoder(thumbnail):
    preprocessor = Preprocessor(pool=Mock(), size=(80, 120), max_pixels=10_000, thumbnail_px=64)
    pixels = np.random.default_rng(0).integers(0, 256, (80, 120, 3), dtype=np.uint8)
    prepared = await preprocessor.prepare_pixels(pixels, thumbnail=thumbnail)
    assert prepared.pixels is pixels
    assert (prepared.size, prepared.box, prepared.format) == ((120, 80), (0, 0, 120, 80), "pixels")
    if thumbnail:
        with Image.open(BytesIO(prepared.thumbnail)) as image:
            assert image.size == (60, 40)
    else:
        assert prepared.thumbnail == b""
