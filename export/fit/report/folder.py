"""The folder of a report: charts, numbers, the list of images, and one HTML page."""

import csv
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from export.fit.report.confusion import confusion
from export.fit.report.curves import curves
from export.fit.report.mistakes import mistakes, write
from export.fit.report.notes import near_copies
from export.fit.report.page import Pictures, Report, page
from export.fit.report.reliability import reliability
from export.fit.report.shown import thumbnails
from export.fit.table import COLUMNS
from export.parts import HELD_OUT, TRAIN
from model.durable import replacing_folder

PAGE, NUMBERS, SPLIT = "index.html", "report.json", "split.csv"
MOST_SUSPECTS, MOST_COPIES = 24, 6  # of which there are pictures


def write_report(report: Report) -> None:
    """Write the report's folder, whole or not at all, in place of what is there."""
    with replacing_folder(report.folder) as folder:
        charts = [curves(report.history)] if report.history else []
        worst = []
        if report.judged:
            charts += [confusion(report.judged), reliability(report.judged)]
            worst = mistakes(report.checkpoint, report.judged)
            write(worst, folder)
        preprocessing = report.checkpoint.preprocessing
        doubted = [Path(suspect.file) for suspect in report.suspects or ()][:MOST_SUSPECTS]
        copies = [files[:2] for files in near_copies(report.dataset)[:MOST_COPIES]]
        pictures = Pictures(
            mistakes=worst,
            suspicious=thumbnails(doubted, preprocessing),
            copies=[(files, thumbnails(files, preprocessing)) for files in copies],
        )
        for chart in charts:
            chart.write(folder)
        (folder / NUMBERS).write_text(json.dumps(_numbers(report), indent=1) + "\n", encoding="utf-8")
        _write_split(report, folder / SPLIT)
        (folder / PAGE).write_text(page(report, charts, pictures), encoding="utf-8")


def _numbers(report: Report) -> dict[str, Any]:
    """The numbers that are in no chart."""
    return {
        "name": report.checkpoint.name,
        "origin": report.origin,
        "recipe": report.checkpoint.recipe,
        "figures": report.checkpoint.figures,
        "notes": list(report.notes),
        "left_out": [{"file": str(file), "reason": reason} for file, reason in report.dataset.left_out],
        "learnt_from": dict(zip(report.checkpoint.labels, report.counts, strict=True)),
        "held_out": report.judged.by_label() if report.judged else [],
        "near_copies": [[str(file) for file in files] for files in near_copies(report.dataset)],
        "suspicious_labels": [*map(asdict, report.suspects or ())],
    }


def _write_split(report: Report, file: Path) -> None:
    """The side of each image, in the form that --images takes. Files are relative to the folder, behind every link."""
    labels, start = report.dataset.labels or ("",), report.folder.parent.resolve() / report.folder.name
    with file.open("w", encoding="utf-8", newline="") as text:
        lines = csv.writer(text)
        lines.writerow(COLUMNS)
        for part, side in ((report.dataset.train, TRAIN), (report.dataset.held_out, HELD_OUT)):
            for image, index in zip(part.files, part.samples.classes.tolist(), strict=True):
                lines.writerow((os.path.relpath(image.parent.resolve() / image.name, start), labels[index], side))
