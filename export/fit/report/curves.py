"""Learning curves: loss and accuracy over the epochs of a run."""

from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite

from export.fit.report.chart import SHARES, Axes, Chart, Drawing
from export.pictures.ticks import nice_ticks
from model.fit.fitted import Point

WIDTH, LEFT, RIGHT = 520, 64, 500
LOSS, ACCURACY = (46, 236), (310, 470)  # top, bottom
MOST_DOTS = 40


def curves(history: Sequence[Point]) -> Chart:
    """Accuracy is below the loss, if it was measured."""
    train, held_out, accuracy = (_series(history, name) for name in ("train_loss", "held_out_loss", "accuracy"))
    drawing = Drawing(WIDTH, (ACCURACY if accuracy else LOSS)[1] + 56)
    for x, kind, name in ((LEFT, "learned", "learned from"), (LEFT + 140, "right", "held out")):
        drawing.line(x, 18, x + 22, 18, kind)
        drawing.text(x + 28, 18, name)
    epochs = nice_ticks(max(point.epoch for point in history) or 1.0)
    losses = nice_ticks(max((loss for _, loss in train + held_out), default=1.0) or 1.0, most=6)
    for name, (top, bottom), ticks, lines in (
        ("Loss", LOSS, losses, ((train, "learned"), (held_out, "right"))),
        ("Accuracy", ACCURACY, SHARES, ((accuracy, "right"),)),
    ):
        if not any(series for series, _ in lines):
            continue
        axes = Axes(left=LEFT, right=RIGHT, top=top, bottom=bottom, across=epochs, down=ticks)
        axes.draw(drawing, across="Epochs", down=name)
        for series, kind in lines:
            places = [(axes.x(epoch), axes.y(value)) for epoch, value in series]
            if len(places) > 1:
                drawing.path(places, kind)
            for place in places if len(places) <= MOST_DOTS else ():
                drawing.dot(*place, kind)
    return Chart(
        name="curves",
        title="Learning curves",
        caption="Loss falls while the network learns. If it falls on the images that are learned from and rises on "
        "those that are held out, the network learns the images by heart: more images help. The held-out images choose "
        "nothing: the weights are those of the last step.",
        svg=drawing.svg(),
        numbers=[asdict(point) for point in history],
    )


Series = list[tuple[float, float]]  # epoch, value


def _series(history: Sequence[Point], name: str) -> Series:
    found = [(point.epoch, getattr(point, name)) for point in history]
    return [(epoch, number) for epoch, number in found if number is not None and isfinite(number)]
