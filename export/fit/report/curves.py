"""Learning curves: loss and accuracy over the epochs of a run."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from math import isfinite

from app.drawing.canvas import Canvas, Color
from app.drawing.chart import nice_ticks
from export.fit.report.axes import Axes, legend
from export.picture import Picture
from model.fit.fitted import Point

WIDTH, HEIGHT = 900, 700
LEFT, RIGHT = 100, 860
LOSS, ACCURACY = (100, 330), (440, 630)  # top, bottom
TRAIN_COLOR, HELD_OUT_COLOR = (152, 160, 168), (31, 119, 180)
RADIUS = 3.5


def curves(history: Sequence[Point]) -> Picture:
    """900 x 700 pixels; the lower half is empty if accuracy was not measured."""
    canvas = Canvas(WIDTH, HEIGHT)
    canvas.text(LEFT, 22, "Learning curves", size=22)
    epochs = nice_ticks(max(point.epoch for point in history) or 1.0)
    train = _series(history, lambda point: point.train_loss)
    held_out = _series(history, lambda point: point.held_out_loss)
    legend(canvas, LEFT, 70, [("learned from", TRAIN_COLOR), ("held out", HELD_OUT_COLOR)])
    losses = Axes(
        left=LEFT,
        right=RIGHT,
        top=LOSS[0],
        bottom=LOSS[1],
        across=epochs,
        down=nice_ticks(max((loss for _, loss in train + held_out), default=1.0) or 1.0, most=6),
    )
    losses.draw(canvas, across="Epochs", down="Loss")
    _draw(canvas, losses, train, TRAIN_COLOR)
    _draw(canvas, losses, held_out, HELD_OUT_COLOR)
    if accuracy := _series(history, lambda point: point.accuracy):
        shares = Axes(
            left=LEFT,
            right=RIGHT,
            top=ACCURACY[0],
            bottom=ACCURACY[1],
            across=epochs,
            down=[0.0, 0.2, 0.4, 0.6, 0.8, 1.0],
        )
        shares.draw(canvas, across="Epochs", down="Accuracy")
        _draw(canvas, shares, accuracy, HELD_OUT_COLOR)
    return Picture(
        name="curves",
        title="Learning curves",
        caption="Loss falls while the network learns. If it falls on the images that are learned from and rises on "
        "those that are held out, the network learns the images by heart: more images help. The held-out images choose "
        "nothing: the weights are those of the last step.",
        png=canvas.png(),
        numbers=[asdict(point) for point in history],
    )


Series = list[tuple[float, float]]  # epoch, value


def _series(history: Sequence[Point], value: Callable[[Point], float | None]) -> Series:
    found = [(point.epoch, value(point)) for point in history]
    return [(epoch, number) for epoch, number in found if number is not None and isfinite(number)]


def _draw(canvas: Canvas, axes: Axes, series: Series, color: Color) -> None:
    places = [(axes.x(epoch), axes.y(value)) for epoch, value in series]
    if len(places) > 1:
        canvas.path(places, color=color, width=2)
    if len(places) <= 40:
        for x, y in places:
            canvas.dot(x, y, radius=RADIUS, fill=color, outline=color)
