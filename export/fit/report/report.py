"""What the report of a run says: export/fit/report/folder.py writes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from export.fit.dataset import Dataset
from export.fit.report.judged import Judged
from export.fit.split import LeftOut
from model.checkpoints.checkpoint import Checkpoint
from model.fit.fitted import Point


@dataclass(frozen=True, kw_only=True)
class Report:
    checkpoint: Checkpoint  # what was learned
    images: Path  # a folder or a CSV
    folder: Path  # of the report
    following: str  # the command that comes next
    history: Sequence[Point]
    dataset: Dataset
    judged: Judged | None  # None where there are no labels
    headline: str
    notes: Sequence[str]  # sentences on the images
    left_out: Sequence[LeftOut]

    @cached_property
    def origin(self) -> str:
        """Where the model is from, in a sentence."""
        recipe, now = self.checkpoint.recipe, datetime.now().astimezone()
        return (
            f"Learned by the method {recipe['method']} from {recipe['checkpoint']} and the images in {self.images}, on "
            f"{now:%Y-%m-%d} at {now:%H:%M}."
        )

    @property
    def counts(self) -> list[int]:
        """How many images of each label were learned from."""
        return [*self.dataset.count(self.dataset.train).values()]
