"""The most confident mistakes, each with a map of the evidence for the answer and a map of the rollout."""

import json
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from app.drawing.png import encode
from app.maps.record import Maps
from export.fit.report.judged import Judged
from export.fit.report.shown import drawn, shown_image
from export.reference import reference
from model.checkpoints.checkpoint import Checkpoint
from model.progress import track

MOST = 24
GAP = 6


@dataclass(frozen=True, kw_only=True)
class Mistake:
    file: str
    right: str
    right_score: float
    answer: str
    answer_score: float
    png: bytes  # the image, the evidence for the answer and against the right label, and the rollout, side by side
    evidence: list[list[float]]  # rows of the patch grid
    rollout: list[list[float]]


def mistakes(checkpoint: Checkpoint, judged: Judged) -> list[Mistake]:
    """The wrong answers of the largest scores, at most 24."""
    wrong = np.flatnonzero(judged.answers != judged.right)
    worst = wrong[np.argsort(-judged.scores[wrong].max(1), kind="stable")][:MOST]
    return [_mistake(checkpoint, judged, place) for place in track(worst.tolist(), "mapping mistakes")]


def picture(number: int) -> str:
    """The file of a mistake, which are numbered from 1, in the folder of the report."""
    return f"mistakes/{number:02}.png"


def write(found: list[Mistake], folder: Path) -> None:
    """Each as a picture, and all of their numbers as `mistakes.json`."""
    (folder / "mistakes").mkdir()
    for number, mistake in enumerate(found, 1):
        (folder / picture(number)).write_bytes(mistake.png)
    numbers = [{name: value for name, value in asdict(mistake).items() if name != "png"} for mistake in found]
    (folder / "mistakes.json").write_text(json.dumps(numbers) + "\n", encoding="utf-8")


def _mistake(checkpoint: Checkpoint, judged: Judged, place: int) -> Mistake:
    answer, right = int(judged.answers[place]), int(judged.right[place])
    image = shown_image(judged.files[place], checkpoint.preprocessing)
    outputs = reference(checkpoint, image.pixels[None].copy(), np.array([[answer, right]]))
    maps = Maps.of({name: values[0] for name, values in outputs.items()})
    first, grid = len(checkpoint.model.config.prefix), checkpoint.model.config.grid
    evidence = (maps.evidence[0] - maps.evidence[1]).sum(axis=0)[first:].reshape(grid)
    rollout = maps.rollout[first:].reshape(grid)
    maps_on_image = [drawn(evidence, image, signed=True), drawn(rollout, image, signed=False)]
    return Mistake(
        file=str(judged.files[place]),
        right=judged.labels[right],
        right_score=float(judged.scores[place, right]),
        answer=judged.labels[answer],
        answer_score=float(judged.scores[place, answer]),
        png=_side_by_side([image.thumbnail, *maps_on_image]),
        evidence=evidence.tolist(),
        rollout=rollout.tolist(),
    )


def _side_by_side(encoded: list[bytes]) -> bytes:
    """Images of one size."""
    images = [Image.open(BytesIO(data)) for data in encoded]
    width, height = images[0].size
    sheet = Image.new("RGBA", (len(images) * (width + GAP) - GAP, height))  # its gaps are transparent
    for place, image in enumerate(images):
        sheet.paste(image, (place * (width + GAP), 0))
    return encode(sheet)
