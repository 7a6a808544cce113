"""Which files of a folder are its weights. Without torch."""

import re
from pathlib import Path

from model.checkpoints.checkpoint import CheckpointError

# The names that hubs give to weights; a folder's or a repository's are the first that it has.
WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "open_clip_model.safetensors",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "open_clip_pytorch_model.bin",
)
SHARDS = {  # patterns of the files that it lists
    "model.safetensors.index.json": ["model-?????-of-?????.safetensors"],
    "pytorch_model.bin.index.json": ["pytorch_model-?????-of-?????.bin"],
}
LONE_FILES = (".safetensors", ".pth", ".pt", ".pth.tar", ".ckpt", ".bin")  # suffixes in a folder without those names
# What trainers and other programs call files of such suffixes that are no weights of a network.
NO_WEIGHTS = re.compile(r"(training_args|optimizer|scheduler|scaler|rng_state.*|random_states.*|openvino_model)\.\w+")


def may_hold_weights(file: str) -> bool:
    """Whether a file without one of the names of hubs may be the weights of its folder."""
    return file.endswith(LONE_FILES) and not NO_WEIGHTS.fullmatch(file)


def weights_files(path: Path) -> list[Path]:
    """A file itself; in a folder the file with a hub's name, else the only one or two, the larger first.

    Raises CheckpointError where there is none, or more.
    """
    if path.is_file():
        return [path]
    for name in WEIGHT_FILES:
        if (path / name).is_file():
            return [path / name]
    if not path.exists():
        raise CheckpointError(f"{path} does not exist")
    files = [file for file in path.iterdir() if may_hold_weights(file.name)]
    if not files and (path / "manifest.json").is_file():
        raise CheckpointError(f"{path} is a bundle, so it is exported already: make serve BUNDLE={path}")
    if not files:
        raise CheckpointError(f"{path} has no weights, such as model.safetensors or a file that ends in .pth or .pt")
    if len(files) > 2:
        raise CheckpointError(f"{path} has {len(files)} files with weights: name one, such as {min(files)}")
    return sorted(files, key=lambda file: file.stat().st_size, reverse=True)
