"""`python -m export`: a checkpoint in, a checked bundle out."""

import argparse
import dataclasses
import logging
import sys
from pathlib import Path

from export.bundle import write_bundle
from export.parity import ParityError
from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import Checkpoint, CheckpointError
from model.positions import resize


def main() -> None:
    arguments = _parser().parse_args()
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    try:
        checkpoint = load_checkpoint(arguments.checkpoint)
        if arguments.image_size:
            checkpoint = resized(checkpoint, arguments.image_size)
        manifest = write_bundle(checkpoint, arguments.out, replace=arguments.replace)
    except (CheckpointError, FileExistsError, ParityError, ValueError) as error:
        sys.exit(f"not exported: {error}")
    parity = manifest.parity
    print(  # noqa: T201
        f"{arguments.out}: {manifest.name}, {manifest.layers} layers, {len(manifest.labels)} labels. "
        f"Largest difference to PyTorch on {parity.pictures} pictures: logits {parity.logits:.0e} (relative), "
        f"attention {parity.attention:.0e}, rollout {parity.rollout:.0e}."
    )


def resized(checkpoint: Checkpoint, image_size: tuple[int, int]) -> Checkpoint:
    """The same checkpoint for pictures of (height, width)."""
    return dataclasses.replace(
        checkpoint,
        config=checkpoint.config.resized(image_size),
        model=resize(checkpoint.model, image_size),
        preprocessing=checkpoint.preprocessing.resized(image_size),
    )


def _image_size(text: str) -> tuple[int, int]:
    sides = [int(side) for side in text.lower().split("x")]
    if len(sides) > 2 or min(sides) < 1:
        raise ValueError
    return sides[0], sides[-1]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m export",
        description="Turn a Vision Transformer checkpoint into a bundle that the service can serve. "
        "The ONNX graphs are checked against PyTorch; if they differ, nothing is written.",
    )
    parser.add_argument(
        "--checkpoint", required=True, help="file or folder with the weights, or hf://org/name[@revision]"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder to write, such as bundles/NAME")
    parser.add_argument("--replace", action="store_true", help="replace the folder if it is there")
    parser.add_argument(
        "--image-size",
        type=_image_size,
        metavar="N or HEIGHTxWIDTH",
        help="serve another size; positions are interpolated, the share that the crop cuts off is kept",
    )
    return parser


if __name__ == "__main__":
    main()
