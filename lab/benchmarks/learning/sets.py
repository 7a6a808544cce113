"""Images to learn from and to be judged by, as PNG in `train` and `val` with a folder for each label."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image
from sklearn.datasets import load_digits

from model.shapes import SHAPES, Outline, Points, Shape, paint
from tests.support.scans import GREYS, HELD_OUT

KNOWN = ("arrow", "circle", "heart", "star")  # to the checkpoint
EACH, JUDGING = 50, 50  # images of each label
NEW_EACH = 40


def digits(folder: Path, seed: int) -> None:
    """Scikit-learn's scans, 1,437 to learn from and 360 to be judged by, which the seed chooses."""
    scans = load_digits()
    for place, row in enumerate(np.random.default_rng(seed).permutation(len(scans.target))):
        scan = (scans.images[row] * 255 / GREYS).round().astype(np.uint8)
        _save(scan, folder / ("val" if place < HELD_OUT else "train") / str(scans.target[row]), row)


def new_shapes(folder: Path, seed: int) -> None:
    """Shapes that the demo's network has not learned, on its kind of background: 320 to learn from."""
    _draw(folder, {shape.__name__: shape for shape in NEW}, NEW_EACH, seed)


def drawn(folder: Path, seed: int) -> None:
    """Four of the shapes that the demo's network has learned: 200 to learn from."""
    _draw(folder, {shape.__name__: shape for shape in SHAPES if shape.__name__ in KNOWN}, EACH, seed)


SETS: dict[str, Callable[[Path, int], None]] = {"digits": digits, "new shapes": new_shapes, "drawn images": drawn}


def _draw(folder: Path, shapes: dict[str, Shape], each: int, seed: int) -> None:
    for kind, (label, shape) in enumerate(shapes.items()):
        for number in range(each + JUDGING):
            rng = np.random.default_rng([seed, kind, number])
            pixels, _ = paint(rng, shape, size=(int(rng.integers(90, 200)), int(rng.integers(90, 200))))
            _save(pixels, folder / ("train" if number < each else "val") / label, number)


def _save(pixels: npt.NDArray[np.uint8], folder: Path, number: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(folder / f"{number:04}.png")


def _outline(*points: tuple[float, float]) -> Outline:
    return [(np.array(points), True)]


def _regular(corners: int, *, turned: float = 0.0) -> Points:
    angle = np.arange(corners) * 2 * np.pi / corners + turned
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def chevron(rng: np.random.Generator) -> Outline:
    return _outline((-0.9, -0.8), (-0.2, -0.8), (0.8, 0), (-0.2, 0.8), (-0.9, 0.8), (rng.uniform(-0.1, 0.2), 0))


def ellipse(rng: np.random.Generator) -> Outline:
    return [(_regular(48) * [0.98, rng.uniform(0.4, 0.6)], True)]


def half(rng: np.random.Generator) -> Outline:
    angle = np.linspace(0, np.pi, 36)
    return [(np.stack([np.cos(angle), rng.uniform(0.9, 1) * np.sin(angle) - 0.45], axis=1), True)]


def hexagram(rng: np.random.Generator) -> Outline:
    return [(_regular(3), True), (_regular(3, turned=np.pi), True)]


def knee(rng: np.random.Generator) -> Outline:
    a = rng.uniform(-0.3, 0)
    return _outline((-0.8, -0.9), (a, -0.9), (a, 0.2), (0.8, 0.2), (0.8, 0.9), (-0.8, 0.9))


def pentagon(rng: np.random.Generator) -> Outline:
    return [(_regular(5), True)]


def tee(rng: np.random.Generator) -> Outline:
    a = rng.uniform(0.22, 0.34)
    return _outline(
        (-0.9, -0.9), (0.9, -0.9), (0.9, -0.9 + 2 * a), (a, -0.9 + 2 * a), (a, 0.9), (-a, 0.9), (-a, -0.9 + 2 * a),
        (-0.9, -0.9 + 2 * a),
    )  # fmt: skip


def zigzag(rng: np.random.Generator) -> Outline:
    a = rng.uniform(0.2, 0.35)
    return _outline((-0.95, -0.7), (a, -0.7), (a, 0), (0.95, 0), (0.95, 0.7), (-a, 0.7), (-a, 0), (-0.95, 0))


NEW: tuple[Shape, ...] = (chevron, ellipse, half, hexagram, knee, pentagon, tee, zigzag)
