"""The reliability diagram: how often answers are right, by their score (Guo et al. 2017, arXiv 1706.04599, fig. 1)."""

import numpy as np

from export.calibration import BINS
from export.fit.report.chart import SHARES, Axes, Chart, Drawing
from export.fit.report.judged import Judged, percent

WIDTH, HEIGHT = 520, 500
FEW = 10  # images


def reliability(judged: Judged) -> Chart:
    """With the same bins as the calibration error."""
    score, right = judged.scores.max(1), judged.answers == judged.right
    place = np.ceil(score * BINS).astype(int) - 1  # bins are open on the left
    images = np.bincount(place, minlength=BINS)
    filled = np.maximum(images, 1)
    hit = np.bincount(place, weights=right, minlength=BINS) / filled
    mean = np.bincount(place, weights=score, minlength=BINS) / filled
    drawing = Drawing(WIDTH, HEIGHT)
    axes = Axes(left=64, right=500, top=12, bottom=444, across=SHARES, down=SHARES)
    axes.draw(drawing, across="Score of the answer", down="Share that is right")
    drawing.line(axes.x(0), axes.y(0), axes.x(1), axes.y(1))
    for bin in images.nonzero()[0]:
        left, width, count = axes.x(bin / BINS) + 1, axes.x(1 / BINS) - axes.left - 2, f"{images[bin]:,}"
        top, share = axes.y(hit[bin]), 0.5 if images[bin] >= FEW else 0.2
        drawing.box(left, top, width, axes.bottom - top, "right", share=share, tip=f"{percent(hit[bin])} of {count}")
        drawing.text(left + width / 2, axes.bottom - 10, count, anchor="middle")
        drawing.dot(axes.x(mean[bin]), top, "right")
    error = judged.figures()["calibration_error"]
    return Chart(
        name="reliability",
        title="Reliability diagram",
        caption=f"The calibration error is {percent(error)}. Answers are sorted by their score into bins; a bar has "
        "its number of images. A dot on the diagonal is a bin whose answers are as often right as their scores say. "
        f"Below the diagonal scores are too high. Pale bars have fewer than {FEW} images and say little.",
        svg=drawing.svg(),
        numbers=[
            {"images": int(count), "score": float(mean[bin]), "right": float(hit[bin])} if count else {"images": 0}
            for bin, count in enumerate(images)
        ],
    )
