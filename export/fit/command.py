"""The command `vit-serve fit CHECKPOINT --images FOLDER --out FILE`: its options and its messages."""

import argparse
from pathlib import Path

from export.arguments import CHECKPOINT, METHODS, FactsParser, add_set, assignment, image_size
from export.messages import stop, tell
from export.refusals import check_fit
from model.checkpoints.checkpoint import CheckpointError, Description
from model.preprocessing import Preprocessing
from model.progress import working
from model.variants import POSITIONS, VARIANTS, variant

IMAGE_SIZE = "224,224"  # pixels
MIDDLE = (0.5, 0.5, 0.5)  # pixels become numbers from -1 to 1, as in vit_jax


def fit(options: argparse.Namespace) -> None:
    try:
        check_fit(options)
    except ValueError as error:
        stop(f"not learned: {error}")
    with working("starting", leave=False):
        from export.fit.methods import recipe
        from export.fit.report.folder import PAGE
        from export.fit.run import NotReported, run
        from model.checkpoints.describe import about_weights
    try:
        chosen = recipe(options.method, options.recipe, seed=options.seed)
        source = _source(options)
        report = run(
            source,
            options.images,
            options.out,
            recipe=chosen,
            seed=options.seed,
            strict=options.strict,
            replace=options.replace,
        )
    except (CheckpointError, ValueError, FileExistsError) as error:
        stop(f"not learned: {error}")
    except NotReported as error:
        stop(f"{error}. Run the same command with --replace when there is room.")
    except OSError as error:
        stop(f"not learned: {error}. Run the same command again; it goes on from the last snapshot, if there is one.")
    except KeyboardInterrupt:
        stop("stopped: run the same command again; it goes on from the last snapshot, if there is one.")
    for sentence in (
        *about_weights(source),
        *report.notes,
        report.headline,
        f"Report: {report.folder / PAGE}",
        f"Next: {report.following}",
    ):
        tell(sentence)


def _source(options: argparse.Namespace) -> Description:
    """The checkpoint, or the network without weights. A method from scratch takes only the network of a checkpoint.

    Raises CheckpointError or ValueError.
    """
    from model.checkpoints import load_checkpoint

    if options.from_scratch:
        return scratch(options.from_scratch, image_size=options.image_size, positions=options.positions or "1-D")
    size = {"image_size": options.image_size} if options.image_size else {}
    without_head = {"num_classes": "0"}  # another will replace it
    overrides = without_head | dict(options.set) | size
    return load_checkpoint(options.checkpoint, overrides=overrides, without=options.without)


def scratch(name: str, *, image_size: str | None, positions: str) -> Description:
    """A variant such as "S/16" without weights, for images of "height,width" pixels. Raises ValueError."""
    from model.checkpoints.families.native import FAMILY
    from model.checkpoints.tensors import pair

    size = pair([int(side) for side in (image_size or IMAGE_SIZE).split(",")])
    return Description(
        name=name,
        family=FAMILY,
        architecture="vit",
        config=variant(name, image_size=size, num_classes=0, **POSITIONS[positions]),
        preprocessing=Preprocessing(
            size=size,
            resize_mode="shortest",
            resize_size=size,
            crop="center",
            interpolation="bilinear",
            mean=MIDDLE,
            std=MIDDLE,
        ),
    )


class FitParser(FactsParser):
    def format_help(self) -> str:
        from export.fit.methods import describe

        self.epilog = f"recipes, with their defaults:\n{describe()}"
        return super().format_help()


def fit_parser() -> argparse.ArgumentParser:
    parser = FitParser(
        prog="vit-serve fit",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Learn the labels of your own images. The result is a checkpoint, which `vit-serve export "
        "--checkpoint FILE`\nturns into a bundle, and a report beside it.",
    )
    parser.add_argument("checkpoint", nargs="?", help=CHECKPOINT)
    add_set(parser)
    parser.add_argument(
        "--image-size",
        type=image_size,
        metavar="N or HEIGHTxWIDTH",
        help="learn and serve at another image size; positions are interpolated",
    )
    parser.add_argument(
        "--images",
        type=Path,
        required=True,
        metavar="FOLDER or CSV",
        help="a folder with a folder of images for each label, or with such folders in train/ and val/; or a CSV with "
        "the columns file and label, and perhaps split (train or val). Without val, a tenth of each label is held out.",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="checkpoint to write: NAME.safetensors")
    parser.add_argument(
        "--method",
        choices=METHODS,
        default="probe",
        help="probe: only a linear head, in closed form, in one pass over the images (default). finetune: every "
        "weight, step by step. pretrain: a network from scratch. masked: the same without labels, by the colours of "
        "hidden patches; fine-tune the result.",
    )
    parser.add_argument(
        "--from-scratch",
        choices=VARIANTS,
        metavar="VARIANT",
        help="the network that pretrain and masked begin with: Ti/16, S/16, B/32 and so on. A checkpoint in its place "
        "gives its network without its weights.",
    )
    parser.add_argument(
        "--positions", choices=tuple(POSITIONS), help="positions of a network from scratch (default: 1-D)"
    )
    parser.add_argument(
        "--recipe",
        type=assignment,
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="change the recipe of the method, such as epochs=5; the fields are below",
    )
    parser.add_argument("--seed", type=int, default=0, help="decides everything that is random (default: 0)")
    parser.add_argument("--strict", action="store_true", help="refuse images that cannot be used; default: skip them")
    parser.add_argument("--replace", action="store_true", help="replace the file and its report if they exist")
    return parser
