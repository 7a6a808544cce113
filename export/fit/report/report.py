"""The report of a run: charts, numbers, the list of images, and one HTML page, in a folder."""

import csv
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from export.fit.dataset import Dataset, Part
from export.fit.listing import COLUMNS, HELD_OUT, TRAIN
from export.fit.report.confusion import confusion
from export.fit.report.curves import curves
from export.fit.report.judged import Judged
from export.fit.report.mistakes import mistakes, write
from export.fit.report.page import page
from export.fit.report.reliability import reliability
from export.fit.split import LeftOut
from model.checkpoints.checkpoint import Checkpoint
from model.durable import replacing_folder
from model.fit.fitted import Point

PAGE, NUMBERS, SPLIT = "index.html", "report.json", "split.csv"


@dataclass(frozen=True, kw_only=True)
class Report:
    """The contents of a report."""

    checkpoint: Checkpoint
    images: Path  # a folder or a CSV
    following: str  # the command that comes next
    history: Sequence[Point]
    dataset: Dataset
    judged: Judged | None  # None where there are no labels
    headline: str
    notes: Sequence[str]  # on the images
    left_out: Sequence[LeftOut]

    def write(self, out: Path) -> None:
        """Write the folder `out`, whole or not at all, in place of what is there."""
        with replacing_folder(out) as folder:
            self._fill(folder, out)

    def _fill(self, folder: Path, out: Path) -> None:
        charts = [curves(self.history)] if self.history else []
        worst = []
        if self.judged:
            charts += [confusion(self.judged), reliability(self.judged)]
            worst = mistakes(self.checkpoint, self.judged)
            write(worst, folder)
        for chart in charts:
            chart.write(folder)
        counts = [*self.dataset.count(self.dataset.train).values()]
        (folder / NUMBERS).write_text(json.dumps(self._numbers(counts), indent=1) + "\n", encoding="utf-8")
        self._write_split(folder / SPLIT, out)
        text = page(
            name=self.checkpoint.name,
            headline=self.headline,
            origin=self._origin,
            following=self.following,
            notes=self.notes,
            recipe=self.checkpoint.recipe,
            figures=self.checkpoint.figures,
            charts=charts,
            counts=counts,
            judged=self.judged,
            mistakes=worst,
        )
        (folder / PAGE).write_text(text, encoding="utf-8")

    @cached_property
    def _origin(self) -> str:
        recipe, now = self.checkpoint.recipe, datetime.now().astimezone()
        return (
            f"Learned by the method {recipe['method']} from {recipe['checkpoint']} and the images in {self.images}, on "
            f"{now:%Y-%m-%d} at {now:%H:%M}."
        )

    def _numbers(self, counts: list[int]) -> dict[str, Any]:
        """The numbers that are in no chart."""
        return {
            "name": self.checkpoint.name,
            "origin": self._origin,
            "recipe": self.checkpoint.recipe,
            "figures": self.checkpoint.figures,
            "notes": list(self.notes),
            "left_out": [{"file": str(file), "reason": reason} for file, reason in self.left_out],
            "learnt_from": dict(zip(self.checkpoint.labels, counts, strict=True)),
            "held_out": self.judged.by_label() if self.judged else [],
        }

    def _write_split(self, file: Path, out: Path) -> None:
        """The side of each image, in the form that --images takes. Files are relative to the folder."""
        with file.open("w", encoding="utf-8", newline="") as text:
            table = csv.writer(text)
            table.writerow(COLUMNS)
            for side, part in ((TRAIN, self.dataset.train), (HELD_OUT, self.dataset.held_out)):
                table.writerows(self._rows(part, side, out))

    def _rows(self, part: Part, side: str, out: Path) -> list[tuple[str, str, str]]:
        labels = self.dataset.labels or ("",)
        places = [os.path.relpath(file.absolute(), out.absolute()) for file in part.files]
        return [(place, labels[index], side) for place, index in zip(places, part.classes, strict=True)]
