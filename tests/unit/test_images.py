"""app/images.py: what is accepted, what it looks like decoded, and that nothing else gets through."""

from contextlib import suppress
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from app.errors import ServiceError, UnsupportedType, UnusableImage
from app.images import Decoder, sniff, upright_rgb

decoder = Decoder(max_pixels=1_000_000, max_aspect_ratio=64)


def decode(data: bytes) -> tuple[Image.Image, str]:
    with decoder.opened(data) as (image, name):
        return upright_rgb(image), name


def pixels(data: bytes) -> np.ndarray:
    return np.asarray(decode(data)[0]).astype(int)


@pytest.fixture(scope="module")
def corners() -> Image.Image:
    """Four quarters of other colours, taller than wide, so that every turn and flip shows."""
    image = Image.new("RGB", (16, 24), "red")
    image.paste("lime", (8, 0, 16, 12))
    image.paste("blue", (0, 12, 8, 24))
    return image


@pytest.mark.parametrize("format", ["PNG", "WEBP", "GIF", "BMP", "TIFF", "JPEG"])
def test_every_accepted_type_decodes_to_the_same_picture(encode, corners, format):
    options = {"lossless": True} if format == "WEBP" else {"quality": 100, "subsampling": 0} if format == "JPEG" else {}
    image, name = decode(encode(corners, format, **options))
    assert name.upper() == format
    assert image.mode == "RGB"
    assert np.abs(np.asarray(image).astype(int) - np.asarray(corners)).max() <= 4


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied(encode, corners, orientation):
    undo = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    stored = corners.transpose(undo[orientation]) if orientation in undo else corners
    exif = Image.Exif()
    exif[0x0112] = orientation
    assert (pixels(encode(stored, "PNG", exif=exif)) == np.asarray(corners)).all()


def test_nonsense_in_the_orientation_is_ignored(encode, corners):
    exif = Image.Exif()
    exif[0x0112] = 77
    assert (pixels(encode(corners, "PNG", exif=exif)) == np.asarray(corners)).all()


@pytest.mark.parametrize("mode", ["RGBA", "LA", "PA"])
def test_transparency_is_laid_on_white(encode, mode):
    image = Image.new("RGBA", (4, 4), (10, 20, 30, 0)).convert(mode)
    assert (pixels(encode(image, "TIFF" if mode == "PA" else "PNG")) == 255).all()


@pytest.mark.parametrize(("mode", "color"), [("P", 1), ("RGB", (10, 20, 30)), ("L", 40)])
def test_a_transparent_colour_is_laid_on_white(encode, mode, color):
    image = Image.new(mode, (4, 4), color)
    if mode == "P":
        image.putpalette([0, 0, 0, 10, 20, 30])
    assert (pixels(encode(image, transparency=color)) == 255).all()


def test_half_transparency_is_mixed_with_white(encode):
    assert np.abs(pixels(encode(Image.new("RGBA", (2, 2), (0, 0, 0, 128)))) - 127).max() <= 1


def test_sixteen_bits_are_scaled_not_clipped(encode):
    ramp = np.linspace(0, 65535, 16, dtype=np.uint16).reshape(4, 4)
    expected = np.rint(ramp / 257).astype(int)
    for format in ("PNG", "TIFF"):
        assert (pixels(encode(Image.fromarray(ramp), format))[..., 0] == expected).all()


def test_float_gray_is_scaled(encode):
    ramp = np.linspace(0, 1, 4, dtype=np.float32).reshape(2, 2)
    assert (pixels(encode(Image.fromarray(ramp), "TIFF"))[..., 0] == [[0, 85], [170, 255]]).all()


def test_cmyk_keeps_its_colours(encode):
    red = Image.new("RGB", (16, 16), (220, 30, 30)).convert("CMYK")
    found = pixels(encode(red, "JPEG", quality=95)).mean(axis=(0, 1))
    assert found[0] > 190
    assert found[1:].max() < 70


def test_only_the_first_frame_counts(encode):
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "blue", "lime")]
    found = pixels(encode(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    assert (found == [255, 0, 0]).all()


@pytest.mark.parametrize("data", [b"hello, I am text", b"\xff", b"%PDF-1.7 ...", b"<svg xmlns='x'/>", b"\x00" * 64])
def test_what_is_no_accepted_image_is_an_unsupported_type(data):
    with pytest.raises(UnsupportedType):
        decode(data)


def test_nothing_at_all_is_unusable():
    with pytest.raises(UnusableImage, match="empty"):
        decode(b"")


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
def test_a_truncated_file_is_unusable(encode, format, share):
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8))
    data = encode(noise, format)
    with pytest.raises(UnusableImage):
        decode(data[: int(len(data) * share)])


def test_too_many_pixels_are_refused_before_they_are_decoded(encode, monkeypatch):
    data = encode(Image.new("1", (1001, 1000)))
    monkeypatch.setattr(Image.Image, "load", lambda self: pytest.fail("decoded"))
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda self: pytest.fail("decoded"))
    with pytest.raises(UnusableImage, match="1000000 pixels"):
        decode(data)


def test_a_sliver_is_refused(encode):
    with pytest.raises(UnusableImage, match="64 times"):
        decode(encode(Image.new("RGB", (65, 1))))
    assert decode(encode(Image.new("RGB", (64, 1))))[0].size == (64, 1)


def test_only_the_sniffed_format_is_tried(encode, monkeypatch):
    """A file that claims to be a PNG never reaches another parser."""
    opened: list[list[str]] = []
    original = Image.open
    monkeypatch.setattr(Image, "open", lambda f, formats: opened.append(formats) or original(f, formats=formats))
    decode(encode(Image.new("RGB", (4, 4)), "PNG"))
    assert opened == [["PNG"]]


def _noise(format: str) -> bytes:
    out = BytesIO()
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (24, 24, 3), dtype=np.uint8)).save(out, format)
    return out.getvalue()


SAMPLES = {format: _noise(format) for format in ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")}


@settings(max_examples=300, deadline=None)
@given(format=st.sampled_from(sorted(SAMPLES)), data=st.data())
def test_damaged_files_decode_or_are_refused_and_nothing_else(format, data):
    damaged = bytearray(SAMPLES[format])
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(1, len(damaged)))
    try:
        image, _ = decode(bytes(damaged[:cut]))
    except ServiceError:
        return
    assert image.mode == "RGB"


@given(st.binary(max_size=64))
def test_sniffing_never_fails_otherwise(data):
    with suppress(UnsupportedType):
        assert sniff(data) in ("JPEG", "PNG", "WebP", "GIF", "BMP", "TIFF")
