"""The reliability diagram: how often answers are right, by their score (Guo et al. 2017, arXiv 1706.04599, fig. 1)."""

import numpy as np

from app.drawing.canvas import FAINT, INK, Canvas
from export.calibration import BINS
from export.fit.report.axes import Axes
from export.fit.report.judged import Judged
from export.picture import Picture

WIDTH, HEIGHT = 640, 640
TICKS = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
FEW = 10  # images
BAR, PALE_BAR, DOT = (158, 202, 225), (222, 235, 244), (31, 119, 180)


def reliability(judged: Judged) -> Picture:
    """640 x 640 pixels; the same bins as the calibration error."""
    score, right = judged.scores.max(1), judged.answers == judged.right
    place = np.ceil(score * BINS).astype(int) - 1  # bins are open on the left
    images = np.bincount(place, minlength=BINS)
    filled = np.maximum(images, 1)
    hit = np.bincount(place, weights=right, minlength=BINS) / filled
    mean = np.bincount(place, weights=score, minlength=BINS) / filled
    canvas = Canvas(WIDTH, HEIGHT)
    canvas.text(100, 22, "Reliability", size=22)
    error = judged.figures()["calibration_error"]
    canvas.text(100, 56, f"calibration error {error:.1%}; each bar has its number of images", size=15)
    axes = Axes(left=100, right=610, top=100, bottom=560, across=TICKS, down=TICKS)
    axes.draw(canvas, across="Score of the answer", down="Share that is right")
    for bin, count in enumerate(images):
        if count:
            left, end = axes.x(bin / BINS) + 1, axes.x((bin + 1) / BINS) - 1
            canvas.box(
                left, min(axes.y(hit[bin]), axes.bottom - 20), end, axes.bottom, fill=BAR if count >= FEW else PALE_BAR
            )
            canvas.text((left + end) / 2, axes.bottom - 6, f"{count}", size=12, anchor="ms")
    canvas.path([(axes.x(0), axes.y(0)), (axes.x(1), axes.y(1))], color=FAINT, width=2)
    for bin, count in enumerate(images):
        if count:
            canvas.dot(axes.x(mean[bin]), axes.y(hit[bin]), radius=4, fill=DOT, outline=INK)
    return Picture(
        name="reliability",
        title="Reliability diagram",
        caption="Answers are sorted by their score into bins. A dot on the diagonal is a bin whose answers are as "
        "often right as their scores say. Below the diagonal scores are too high. Pale bars have fewer than "
        f"{FEW} images and say little.",
        png=canvas.png(),
        numbers=[
            {"images": int(count), "score": float(mean[bin]), "right": float(hit[bin])} if count else {"images": 0}
            for bin, count in enumerate(images)
        ],
    )
