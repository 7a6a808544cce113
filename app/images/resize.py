"""Pillow's resize of a crop alone, and Pillow's reduce.

resize.c does both in a fraction of the time, where it is compiled (app/images/compiler.py) and gives Pillow's pixels in
a few tries. Else Pillow does them.
"""

import ctypes
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from app.images.compiler import library_path

log = logging.getLogger(__name__)

Size = tuple[int, int]  # width, height
DONE, REFUSED, NO_MEMORY = range(3)  # what the library returns
FILTERS = [Image.Resampling[name] for name in ("NEAREST", "LANCZOS", "BILINEAR", "BICUBIC", "BOX", "HAMMING")]

# Sizes of images, before and after, and factors: larger and smaller, each order of passes, and one that stays.
TRIES = (
    ((150, 80), (67, 37), 7), ((30, 210), (24, 21), 2), ((9, 7), (61, 40), 3), ((64, 90), (64, 33), 4),
)  # fmt: skip


def resized_crop(
    image: Image.Image, size: Size, offset: Size, crop: Size, resampling: Image.Resampling
) -> npt.NDArray[np.uint8]:
    """Of an RGB image, resized to `size`, the part of size `crop` that begins at `offset`: uint8 (rows, columns, 3)."""
    library = fast()
    pixels = library.resized_crop(image, size, offset, crop, resampling) if library else None
    return pillows_crop(image, size, offset, crop, resampling) if pixels is None else pixels


def reduced(image: Image.Image, factor: int) -> Image.Image:
    """Of an RGB image the means of `factor` by `factor` pixels; of fewer at the right and at the bottom. Its mode is
    RGB or RGBX.
    """
    library = fast()
    small = library.reduced(image, factor) if library else None
    return image.reduce(factor) if small is None else small


def pillows_crop(
    image: Image.Image, size: Size, offset: Size, crop: Size, resampling: Image.Resampling
) -> npt.NDArray[np.uint8]:
    """What `resized_crop` gives, by Pillow alone."""
    (left, top), (columns, rows) = offset, crop
    pixels = np.asarray(image.resize(size, resampling))
    return np.ascontiguousarray(pixels[top : top + rows, left : left + columns])


class Library:
    """resize.c, compiled and loaded.

    It reads Pillow's own memory through the Arrow C data interface, without a copy. Its methods return None for what it
    refuses, such as an image whose pixels Pillow keeps in several pieces. Those are images of more than 16 MB, except
    in processes that decode (PILLOW_BLOCK_SIZE in app/images/worker.py).
    """

    def __init__(self, path: Path) -> None:
        """Raises OSError when it cannot be loaded."""
        library, number, address = ctypes.CDLL(str(path)), ctypes.c_int, ctypes.c_void_p
        self._resized_crop = library.resized_crop
        self._resized_crop.argtypes = [address, *[number] * 9, address]
        self._reduced = library.reduced
        self._reduced.argtypes = [address, *[number] * 3, address]
        capsule = ("PyCapsule_GetPointer", ctypes.pythonapi)
        self._address = ctypes.PYFUNCTYPE(address, ctypes.py_object, ctypes.c_char_p)(capsule)

    def resized_crop(
        self, image: Image.Image, size: Size, offset: Size, crop: Size, resampling: Image.Resampling
    ) -> npt.NDArray[np.uint8] | None:
        """See the function of this name. Raises MemoryError."""
        pixels = np.empty((crop[1], crop[0], 3), np.uint8)
        arguments = (*image.size, *size, *offset, *crop, resampling, pixels.ctypes.data)
        return pixels if self._run(self._resized_crop, image, *arguments) else None

    def reduced(self, image: Image.Image, factor: int) -> Image.Image | None:
        """See the function of this name. Raises MemoryError."""
        small = (-(-image.width // factor), -(-image.height // factor))
        pixels = np.empty((small[1], small[0], 4), np.uint8)
        done = self._run(self._reduced, image, *image.size, factor, pixels.ctypes.data)
        return Image.frombuffer("RGBX", small, pixels, "raw", "RGBX", 0, 1) if done else None  # not copied

    def _run(self, function: Callable[..., int], image: Image.Image, *arguments: int) -> bool:
        if image.mode != "RGB":
            return False
        try:
            capsules = image.__arrow_c_array__()
        except ValueError:  # pixels in several pieces
            return False
        result = function(self._address(capsules[1], b"arrow_array"), *arguments)
        if result == NO_MEMORY:
            raise MemoryError
        return result == DONE


@cache
def fast() -> Library | None:
    """None where Pillow has to do all. The log says why."""
    try:
        library = Library(library_path())
    except OSError as error:
        reason = f"resize.c is not compiled for this machine ({error})"
    else:
        if _gives_pillows_pixels(library):
            return library
        reason = "resize.c gives other pixels"
    log.info("Pillow resizes images, which takes longer: %s", reason)
    return None


def _gives_pillows_pixels(library: Library) -> bool:
    """In all of `TRIES`."""
    for (width, height), size, factor in TRIES:
        noise = np.arange(width * height * 3, dtype=np.uint32) * 2654435769 >> 24
        image = Image.fromarray(noise.astype(np.uint8).reshape(height, width, 3))
        offset, crop = (1, 2), (size[0] - 3, size[1] - 4)
        for resampling in FILTERS:
            ours = library.resized_crop(image, size, offset, crop, resampling)
            if ours is None or not np.array_equal(ours, pillows_crop(image, size, offset, crop, resampling)):
                return False
        small = library.reduced(image, factor)
        if small is None or small.convert("RGB").tobytes() != image.reduce(factor).tobytes():
            return False
    return True
