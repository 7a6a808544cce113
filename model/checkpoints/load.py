"""Recognises a checkpoint by its content and loads it."""

from pathlib import Path

from model.checkpoints import native
from model.checkpoints.checkpoint import Checkpoint, CheckpointError


def load_checkpoint(path: str | Path) -> Checkpoint:
    """The network with its weights, preprocessing and labels. Raises CheckpointError with the reason."""
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"{path} is not a file")
    if native.recognises(path):
        return native.load(path)
    raise CheckpointError(f"{path.name} is not a checkpoint that this version knows: a safetensors file made by it")
