"""Images of one geometric shape on a textured, cluttered background, with the shape's mask. NumPy and Pillow only.

All lengths are relative, so the same seed gives the same composition at any size.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

Points = npt.NDArray[np.float64]  # (n, 2), x right and y down, within the unit circle
Outline = list[tuple[Points, bool]]  # polygons painted in turn: True adds to the mask, False cuts out of it

SUPERSAMPLING = 3
MIN_CONTRAST = 80.0  # Euclidean distance in 8-bit RGB between the shape and the background under it


@dataclass(frozen=True, kw_only=True)
class Sample:
    pixels: npt.NDArray[np.uint8]  # (height, width, 3) RGB
    mask: npt.NDArray[np.uint8]  # (height, width), 255 on the shape
    label: int  # index into LABELS


def _circle(radius: float, *, x: float = 0.0) -> Points:
    angle = np.linspace(0, 2 * np.pi, 72, endpoint=False)
    return np.stack([x + radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def _regular(corners: int) -> Points:
    angle = np.arange(corners) * 2 * np.pi / corners - np.pi / 2
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _polygon(*points: tuple[float, float]) -> Outline:
    return [(np.array(points), True)]


def arrow(rng: np.random.Generator) -> Outline:
    shaft, head, neck = rng.uniform(0.15, 0.26), rng.uniform(0.5, 0.72), rng.uniform(-0.05, 0.25)
    return _polygon(
        (-0.95, -shaft), (neck, -shaft), (neck, -head), (0.98, 0), (neck, head), (neck, shaft), (-0.95, shaft)
    )


def bolt(rng: np.random.Generator) -> Outline:
    lean = rng.uniform(-0.06, 0.06)
    return _polygon(
        (0.28, -0.96), (-0.55, 0.12), (-0.06, 0.12), (-0.3, 0.96), (0.58, -0.22 + lean), (0.08, -0.22 + lean)
    )


def circle(rng: np.random.Generator) -> Outline:
    return [(_circle(0.92), True)]


def crescent(rng: np.random.Generator) -> Outline:
    return [(_circle(0.98), True), (_circle(rng.uniform(0.74, 0.86), x=rng.uniform(0.38, 0.5)), False)]


def cross(rng: np.random.Generator) -> Outline:
    a, b = rng.uniform(0.22, 0.34), 0.93
    return _polygon(
        (-a, -b), (a, -b), (a, -a), (b, -a), (b, a), (a, a), (a, b), (-a, b), (-a, a), (-b, a), (-b, -a), (-a, -a)
    )


def drop(rng: np.random.Generator) -> Outline:
    radius = rng.uniform(0.52, 0.62)
    angle = np.linspace(-0.18 * np.pi, 1.18 * np.pi, 48)
    bowl = np.stack([radius * np.cos(angle), 0.98 - radius + radius * np.sin(angle)], axis=1)
    return [(np.concatenate([bowl, [[0.0, -0.98]]]), True)]


def heart(rng: np.random.Generator) -> Outline:
    t = np.linspace(0, 2 * np.pi, 72, endpoint=False)
    x = 16 * np.sin(t) ** 3
    y = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    return [(np.stack([x, -(y + 2.5)], axis=1) / 17.5, True)]


def hourglass(rng: np.random.Generator) -> Outline:
    width, waist = rng.uniform(0.62, 0.75), rng.uniform(0.04, 0.1)
    return _polygon((-width, -0.9), (width, -0.9), (waist, 0), (width, 0.9), (-width, 0.9), (-waist, 0))


def ring(rng: np.random.Generator) -> Outline:
    return [(_circle(0.95), True), (_circle(rng.uniform(0.48, 0.68)), False)]


def square(rng: np.random.Generator) -> Outline:
    return [(_regular(4), True)]


def star(rng: np.random.Generator) -> Outline:
    radius = np.where(np.arange(10) % 2, rng.uniform(0.38, 0.5), 1.0)[:, None]
    return [(_regular(10) * radius, True)]


def triangle(rng: np.random.Generator) -> Outline:
    return [(_regular(3), True)]


Shape = Callable[[np.random.Generator], Outline]
SHAPES: tuple[Shape, ...] = (
    arrow, bolt, circle, crescent, cross, drop, heart, hourglass, ring, square, star, triangle,
)  # fmt: skip
LABELS: tuple[str, ...] = tuple(shape.__name__ for shape in SHAPES)


def draw(rng: np.random.Generator, *, size: tuple[int, int] = (64, 64), label: int | None = None) -> Sample:
    """Draw one image of `size` (width, height) pixels; `label` is random unless it is given."""
    if label is None:
        label = int(rng.integers(len(SHAPES)))
    pixels, mask = paint(rng, SHAPES[label], size=size)
    return Sample(pixels=pixels, mask=mask, label=label)


def paint(
    rng: np.random.Generator, shape: Shape, *, size: tuple[int, int]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """An image of `size` (width, height) pixels with the shape in it, and its mask, as in Sample."""
    canvas = _clutter(rng, _background(rng, size))
    mask = _shape_mask(rng, shape, size)
    under = np.asarray(canvas, dtype=np.float64)[np.asarray(mask) > 127].mean(axis=0)
    canvas.paste(_fill(rng, size, under), mask=mask)
    pixels = np.asarray(canvas, dtype=np.float64)
    pixels = pixels + rng.normal(0, rng.choice([0.0, 3.0, 8.0]), pixels.shape)
    return np.clip(pixels, 0, 255).astype(np.uint8), np.asarray(mask)


def held_out(count: int, *, seed: int = 1_000_003) -> Iterator[Sample]:
    """`count` images that no training run uses: training seeds are smaller than this one."""
    for index in range(count):
        yield draw(np.random.default_rng([seed, index]))


def _shape_mask(rng: np.random.Generator, shape: Shape, size: tuple[int, int]) -> Image.Image:
    width, height = size
    side = min(size)
    radius = side * rng.uniform(0.24, 0.46)
    margin = 0.85 * radius
    corner = np.array([width - side, height - side]) / 2  # of the central square, which a centre crop keeps
    center = corner + rng.uniform(margin, side - margin, 2)
    angle, stretch, shear = rng.uniform(0, 2 * np.pi), np.exp(rng.uniform(-0.12, 0.12)), rng.uniform(-0.1, 0.1)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    warp = turn @ np.array([[stretch, shear], [0, 1 / stretch]]) * radius
    big = Image.new("L", (width * SUPERSAMPLING, height * SUPERSAMPLING))
    pen = ImageDraw.Draw(big)
    for points, adds in shape(rng):
        pen.polygon([tuple(p) for p in (points @ warp.T + center) * SUPERSAMPLING], fill=255 if adds else 0)
    return big.reduce(SUPERSAMPLING)


def _color(rng: np.random.Generator) -> Any:
    if rng.random() < 0.15:
        return rng.choice([0.0, 20.0, 128.0, 235.0, 255.0]) * np.ones(3)
    return rng.uniform(0, 255, 3)


def _background(rng: np.random.Generator, size: tuple[int, int]) -> Image.Image:
    width, height = size
    kind = rng.choice(["plain", "gradient", "blotches", "stripes", "checks"], p=[0.22, 0.18, 0.3, 0.15, 0.15])
    first, second = _color(rng), _color(rng)
    second = first + (second - first) * rng.uniform(0.15, 0.7)
    y, x = np.mgrid[0:height, 0:width] / min(size)
    angle, period = rng.uniform(0, np.pi), rng.uniform(0.06, 0.25)
    along, across = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
    if kind == "plain":
        weight = np.zeros((height, width))
    elif kind == "gradient":
        weight = (along - along.min()) / np.ptp(along)
    elif kind == "stripes":
        weight = 0.5 + 0.5 * np.sin(2 * np.pi * along / period)
    elif kind == "checks":
        weight = ((np.floor(along / period) + np.floor(across / period)) % 2).astype(np.float64)
    else:
        cells = int(rng.integers(3, 11))
        noise = Image.fromarray(rng.integers(0, 256, (cells, cells), dtype=np.uint8))
        weight = np.asarray(noise.resize(size, Image.Resampling.BICUBIC)) / 255.0
    return Image.fromarray((first + (second - first) * weight[..., None]).astype(np.uint8))


def _clutter(rng: np.random.Generator, canvas: Image.Image) -> Image.Image:
    """Thin lines, specks and blurred smudges: too thin, too small or too soft to be one of the shapes."""
    width, height = canvas.size
    side = min(canvas.size)
    if rng.random() < 0.3:
        return canvas
    if rng.random() < 0.5:
        smudges = canvas.copy()
        pen = ImageDraw.Draw(smudges)
        for _ in range(rng.integers(1, 5)):
            x, y, r = rng.uniform(0, width), rng.uniform(0, height), side * rng.uniform(0.05, 0.15)
            pen.ellipse([x - r, y - r, x + r, y + r], fill=tuple(int(c) for c in _color(rng)))
        canvas = smudges.filter(ImageFilter.GaussianBlur(side * 0.06))
    pen = ImageDraw.Draw(canvas)
    for _ in range(rng.integers(0, 7)):
        ends = rng.uniform(-0.2, 1.2, 4) * [width, height, width, height]
        pen.line(
            ends.tolist(), fill=tuple(int(c) for c in _color(rng)), width=max(1, round(side * rng.uniform(0, 0.03)))
        )
    for _ in range(rng.integers(0, 12)):
        x, y, r = rng.uniform(0, width), rng.uniform(0, height), side * rng.uniform(0.01, 0.035)
        pen.rectangle([x - r, y - r, x + r, y + r], fill=tuple(int(c) for c in _color(rng)))
    return canvas


def _fill(rng: np.random.Generator, size: tuple[int, int], under: Points) -> Image.Image:
    """A colour, or a soft gradient of two similar ones, that differs clearly from `under` (RGB)."""
    color = _color(rng)
    while np.linalg.norm(color - under) < MIN_CONTRAST:
        color = _color(rng)
    width, height = size
    shade = rng.uniform(-25, 25) if rng.random() < 0.5 else 0.0
    ramp = np.linspace(-shade, shade, height)[:, None, None] + np.zeros((1, width, 1))
    return Image.fromarray(np.clip(color + ramp, 0, 255).astype(np.uint8))
