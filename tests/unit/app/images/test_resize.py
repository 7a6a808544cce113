"""app/images/resize.py and resize.c: Pillow's pixels, with the library and without."""

import logging
import pickle
from dataclasses import replace
from io import BytesIO
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from app.images import resize
from app.images.compiler import compile_to, library_path
from app.images.preprocess import preprocess
from app.images.resize import FILTERS, NO_MEMORY, Library, fast, pillows_crop
from tests.support.specs import preparer_of, spec_of

EXAMPLES = 300
sides = st.one_of(st.integers(1, 12), st.integers(1, 400))


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Library:
    path = library_path()
    if not path.exists():
        path = tmp_path_factory.mktemp("compiled") / path.name
        try:
            compile_to(path)
        except OSError:
            pytest.skip("no C compiler")
    return Library(path)


@pytest.fixture
def unloaded():
    """Nothing is loaded yet."""
    fast.cache_clear()
    yield
    fast.cache_clear()


@st.composite
def images(draw) -> Image.Image:
    """Noise, black and white pixels, and ramps."""
    width, height = draw(sides), draw(sides)
    pixels = np.random.default_rng(draw(st.integers(0, 2**32))).integers(0, 256, (height, width, 3), np.uint8)
    kind = draw(st.sampled_from(("noise", "extremes", "ramp")))
    if kind == "ramp":
        pixels = np.add.outer(np.arange(height), np.arange(width))[..., None] * np.array([1, 2, 3])
    return Image.fromarray((np.where(pixels < 128, 0, 255) if kind == "extremes" else pixels).astype(np.uint8))


@st.composite
def crops(draw, width: int, height: int) -> tuple[tuple[int, int], ...]:
    """The size of a resized image, and the offset and the size of a crop. One side may stay."""
    size = draw(st.sampled_from((width, draw(sides)))), draw(st.sampled_from((height, draw(sides))))
    offset = tuple(draw(st.integers(0, side - 1)) for side in size)
    crop = tuple(draw(st.integers(1, side - at)) for side, at in zip(size, offset, strict=True))
    return size, offset, crop


@settings(max_examples=EXAMPLES)
@given(data=st.data(), image=images(), resampling=st.sampled_from(FILTERS))
def test_any_crop_of_any_resize_is_pillows(library, data, image, resampling):
    size, offset, crop = data.draw(crops(*image.size))
    ours = library.resized_crop(image, size, offset, crop, resampling)
    assert np.array_equal(ours, pillows_crop(image, size, offset, crop, resampling))


@settings(max_examples=EXAMPLES)
@given(image=images(), factor=st.integers(1, 30))
def test_any_reduced_image_is_pillows(library, image, factor):
    assert library.reduced(image, factor).convert("RGB").tobytes() == image.reduce(factor).tobytes()


@pytest.mark.parametrize(
    ("size", "to", "crop"),
    [((16384, 4), (9, 5), (7, 3)), ((4, 16384), (5, 9), (3, 7)), ((3, 2), (1600, 1200), (70, 60))],
)
def test_extreme_sizes_are_pillows(library, size, to, crop):
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), np.uint8))
    for resampling in FILTERS:
        ours = library.resized_crop(noise, to, (1, 1), crop, resampling)
        assert np.array_equal(ours, pillows_crop(noise, to, (1, 1), crop, resampling))


RGB = Image.new("RGB", (20, 20))
NINE = ((9, 9), (0, 0), (9, 9), Image.Resampling.BICUBIC)


@pytest.mark.parametrize(
    ("image", "size", "offset", "crop", "resampling"),
    [
        *((Image.new(mode, (20, 20)), *NINE) for mode in ("RGBA", "L")),
        (Image.new("RGB", (2500, 2000)), *NINE),  # 20 MB are not in one piece
        (RGB, *NINE[:3], Image.Resampling.MKS2021),  # which no model has
        (RGB, (8, 8), (1, 0), (8, 8), Image.Resampling.BICUBIC),
        (RGB, (8, 8), (0, -1), (8, 8), Image.Resampling.BICUBIC),
        (RGB, (8, 8), (2**31 - 8, 0), (8, 8), Image.Resampling.BICUBIC),
        (RGB, (0, 8), (0, 0), (8, 8), Image.Resampling.BICUBIC),
        (RGB, (2**31 - 1, 8), (0, 0), (8, 8), Image.Resampling.BICUBIC),
    ],
)
def test_other_pixels_filters_and_crops_outside_are_left_to_pillow(library, image, size, offset, crop, resampling):
    assert library.resized_crop(image, size, offset, crop, resampling) is None
    assert image is RGB or library.reduced(image, 9) is None


def test_too_little_memory_is_an_error(library, monkeypatch):
    monkeypatch.setattr(library, "_reduced", Mock(return_value=NO_MEMORY))
    with pytest.raises(MemoryError):
        library.reduced(Image.new("RGB", (20, 20)), 2)


def test_the_answers_are_the_same_without_the_library(library, monkeypatch, encode):
    spec = spec_of((24, 32), (40, 48))
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 150, 3), np.uint8))
    answers = []
    for loaded in (library, None):
        monkeypatch.setattr(resize, "fast", lambda loaded=loaded: loaded)
        rules = [replace(spec, interpolation=resampling.name.lower()) for resampling in FILTERS]
        prepared = preparer_of(spec).prepare(encode(noise), thumbnail=True)
        answers.append([*(preprocess(noise, rule)[0].tobytes() for rule in rules), prepared.thumbnail])
    assert answers[0] == answers[1]
    assert Image.open(BytesIO(answers[0][-1])).size == (15, 9)


@pytest.mark.parametrize(
    ("altered", "reason"),
    [
        (("library_path", lambda: library_path().with_name("absent")), "not compiled for this machine"),
        (("library_path", lambda: library_path().with_name("resize.c")), "not compiled for this machine"),
        (("Library", Mock(return_value=Mock(resized_crop=pillows_crop, reduced=lambda image, factor: image))), "other"),
        (
            ("Library", Mock(return_value=Mock(resized_crop=lambda *rule: np.zeros(3), reduced=Image.Image.reduce))),
            "other",
        ),
    ],
)
def test_without_a_right_library_pillow_works_and_the_log_says_so_once(unloaded, monkeypatch, caplog, altered, reason):
    caplog.set_level(logging.INFO, logger=resize.__name__)
    monkeypatch.setattr(resize, *altered)
    image = Image.new("RGB", (20, 10), "teal")
    assert resize.reduced(image, 2).size == resize.reduced(image, 2).size == (10, 5)
    assert [reason in record.message for record in caplog.records] == [True]


def test_the_library_is_loaded_before_workers_are_forked(monkeypatch):
    loaded = Mock()
    monkeypatch.setattr("app.images.preparer.fast", loaded)
    preparer = preparer_of(spec_of((8, 8)))
    assert not loaded.called
    assert pickle.loads(pickle.dumps(preparer)) == preparer
    assert loaded.called
