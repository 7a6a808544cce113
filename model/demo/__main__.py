"""`python -m model.demo`: train the demo model, measure it, or draw its held-out images."""

import argparse
import json
import shutil
from pathlib import Path

from PIL import Image

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.families.native import FAMILY, save
from model.demo.evaluate import evaluate
from model.demo.train import CONFIG, PREPROCESSING, Recipe, train
from model.progress import track
from model.shapes import LABELS, held_out

WEIGHTS = Path(__file__).parent / "shapes.safetensors"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m model.demo", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("train", "train with the recipe (about 40 minutes on two cores), measure and save"),
        ("evaluate", "measure saved weights on 2,000 held-out images"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--file", type=Path, default=WEIGHTS, help=f"default: {WEIGHTS.name}")
    images = commands.add_parser("images", help="write held-out images as FOLDER/label/number.png")
    images.add_argument("folder", type=Path)
    images.add_argument("--count", type=int, default=2000, help="default: 2000")
    arguments = parser.parse_args()
    if arguments.command == "train":
        train_and_save(arguments.file)
    elif arguments.command == "evaluate":
        print(json.dumps(evaluate(load_checkpoint(arguments.file).model), indent=2))  # noqa: T201
    else:
        write_images(arguments.folder, arguments.count)


def train_and_save(path: Path) -> None:
    """What an interrupted run has learned lies in a folder beside the file, and the next run goes on with it."""
    work = path.with_name(f"{path.name}.work")
    model = train(Recipe(), work=work)
    checkpoint = Checkpoint(
        name="shapes",
        family=FAMILY,
        architecture="vit",
        config=CONFIG,
        model=model,
        preprocessing=PREPROCESSING,
        labels=LABELS,
        figures=evaluate(model),
    )
    print(json.dumps(checkpoint.figures, indent=2))  # noqa: T201
    save(checkpoint, path)
    shutil.rmtree(work, ignore_errors=True)


def write_images(folder: Path, count: int) -> None:
    for number, sample in enumerate(track(held_out(count), "drawing", of=count)):
        path = folder / LABELS[sample.label] / f"{number:05}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(sample.pixels).save(path)


if __name__ == "__main__":
    main()
