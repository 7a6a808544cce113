"""app/intake.py: what is prepared, and who waits for whom."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

import app.intake
from app.bundle import ImageSpec, Resize
from app.errors import UnusableImage
from app.images import Decoder, upright_rgb
from app.intake import Intake

SPEC = ImageSpec(
    size=(8, 8), resize=Resize(mode="shortest", size=(8, 8)), crop="center", interpolation="bicubic",
    mean=(0, 0, 0), std=(1, 1, 1),
)  # fmt: skip
LARGE = (2001, 2000)


def intake(pool: ThreadPoolExecutor, workers: int) -> Intake:
    decoder = Decoder(max_pixels=5_000_000, max_aspect_ratio=64)
    return Intake(decoder=decoder, spec=SPEC, pool=pool, workers=workers, thumbnail_px=16)


def prepare(*pictures: bytes, workers: int = 2, thumbnail: bool = True):
    async def all_of_them():
        with ThreadPoolExecutor(workers) as pool:
            prepared = intake(pool, workers)
            return await asyncio.gather(*(prepared.prepare(data, thumbnail=thumbnail) for data in pictures))

    return asyncio.run(all_of_them())


@pytest.mark.parametrize("size", [(40, 20), LARGE])
def test_a_picture_of_any_size_is_prepared(encode, size):
    (done,) = prepare(encode(Image.new("RGB", size, "teal")))
    assert done.size == size
    assert done.format == "PNG"
    assert (done.pixels == (0, 128, 128)).all()
    assert done.pixels.shape == (8, 8, 3)


@pytest.mark.parametrize(("size", "expected"), [((40, 20), (16, 8)), ((12, 10), (12, 10)), ((3, 160), (1, 16))])
def test_the_thumbnail_keeps_the_shape_and_is_never_larger(encode, size, expected):
    (done,) = prepare(encode(Image.new("RGB", size, "teal")))
    assert Image.open(BytesIO(done.thumbnail)).size == expected


def test_the_thumbnail_shows_the_picture(encode):
    left = Image.new("RGB", (64, 64), "white")
    left.paste("black", (0, 0, 32, 64))
    shown = np.asarray(Image.open(BytesIO(prepare(encode(left))[0].thumbnail)))
    assert shown[:, :6].max() < 30
    assert shown[:, 10:].min() > 225


def test_without_maps_there_is_no_thumbnail(encode):
    assert prepare(encode(Image.new("RGB", (40, 20))), thumbnail=False)[0].thumbnail is None


@pytest.mark.parametrize("size", [(2300, 2300), (1, 100)])
def test_limits_hold_for_large_and_small(encode, size):
    with pytest.raises(UnusableImage):
        prepare(encode(Image.new("RGB", size)))


def test_large_pictures_leave_a_worker_to_small_ones(encode, monkeypatch):
    """Three large pictures hang in the decoder; a small one that comes after them is answered."""
    small_is_done = threading.Event()

    def slow(image):
        if image.size == LARGE:
            assert small_is_done.wait(20), "the small picture waited for the large ones"
        return upright_rgb(image)

    monkeypatch.setattr(app.intake, "upright_rgb", slow)
    large, small = (encode(Image.new("RGB", size)) for size in (LARGE, (20, 20)))

    async def race():
        with ThreadPoolExecutor(2) as pool:
            prepared = intake(pool, 2)
            slow_ones = [asyncio.ensure_future(prepared.prepare(large, thumbnail=False)) for _ in range(3)]
            await asyncio.sleep(0)
            await prepared.prepare(small, thumbnail=False)
            small_is_done.set()
            return [done.size for done in await asyncio.gather(*slow_ones)]

    assert asyncio.run(race()) == [LARGE] * 3
