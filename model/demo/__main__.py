"""`python -m model.demo`: train the demo model, measure it, or draw images."""

import argparse
import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
from PIL import Image
from tqdm import tqdm

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.families.native import FAMILY, save
from model.demo.evaluate import evaluate
from model.demo.train import CONFIG, PREPROCESSING, Recipe, train
from model.shapes import LABELS, draw, held_out

WEIGHTS = Path(__file__).parent / "shapes.safetensors"
SHEET_COLUMNS, SHEET_ROWS = 12, 8


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m model.demo", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("train", "train with the recipe (about 40 minutes on two cores), measure and save"),
        ("evaluate", "measure saved weights on 2,000 held-out images"),
        ("sheet", "draw a contact sheet of images to a PNG"),
    ):
        command = commands.add_parser(name, help=text)
        default = Path("sheet.png") if name == "sheet" else WEIGHTS
        command.add_argument("--file", type=Path, default=default, help=f"default: {default.name}")
    images = commands.add_parser("images", help="write held-out images as FOLDER/label/number.png")
    images.add_argument("folder", type=Path)
    images.add_argument("--count", type=int, default=2000, help="default: 2000")
    arguments = parser.parse_args()
    if arguments.command == "train":
        train_and_save(arguments.file)
    elif arguments.command == "evaluate":
        print(json.dumps(evaluate(load_checkpoint(arguments.file).model), indent=2))  # noqa: T201
    elif arguments.command == "images":
        write_images(arguments.folder, arguments.count)
    else:
        sheet().save(arguments.file)


def train_and_save(path: Path) -> None:
    """What an interrupted run has learned lies in a folder beside the file, and the next run goes on with it."""
    work = path.with_name(f"{path.name}.work")
    checkpoint = Checkpoint(
        name="shapes",
        family=FAMILY,
        architecture="vit",
        config=CONFIG,
        model=train(Recipe(), work=work),
        preprocessing=PREPROCESSING,
        labels=LABELS,
    )
    checkpoint = dataclasses.replace(checkpoint, figures=evaluate(checkpoint.model))
    print(json.dumps(checkpoint.figures, indent=2))  # noqa: T201
    save(checkpoint, path)
    shutil.rmtree(work, ignore_errors=True)


def write_images(folder: Path, count: int) -> None:
    for number, sample in enumerate(tqdm(held_out(count), total=count, desc="drawing", unit="image")):
        path = folder / LABELS[sample.label] / f"{number:05}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(sample.pixels).save(path)


def sheet() -> Image.Image:
    """A shape in each column, a background in each row."""
    side = CONFIG.image_size[0]
    out = Image.new("RGB", (SHEET_COLUMNS * side, SHEET_ROWS * side))
    for index in range(SHEET_COLUMNS * SHEET_ROWS):
        sample = draw(np.random.default_rng(index), size=(side, side), label=index % len(LABELS))
        out.paste(Image.fromarray(sample.pixels), (index % SHEET_COLUMNS * side, index // SHEET_COLUMNS * side))
    return out


if __name__ == "__main__":
    main()
