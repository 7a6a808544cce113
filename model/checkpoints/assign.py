"""Copies tensors into a network, strictly."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError
from model.vit import VisionTransformer

MOST_NAMED = 8  # in a message


def assign(model: VisionTransformer, tensors: dict[str, Tensor], names_in_file: Mapping[str, str]) -> None:
    """Copy tensors into parameters of the same name and shape. Raises CheckpointError unless all match; it calls a
    tensor that has no place as the file does.
    """
    expected = model.state_dict()
    complaints = [
        *(f"unused: {names_in_file.get(key, key)}" for key in sorted(tensors.keys() - expected.keys())),
        *(f"missing: {key}" for key in sorted(expected.keys() - tensors.keys())),
        *(
            f"{key} is {tuple(tensors[key].shape)}, not {tuple(expected[key].shape)}"
            for key in sorted(expected.keys() & tensors.keys())
            if tensors[key].shape != expected[key].shape
        ),
    ]
    if complaints:
        raise CheckpointError(f"the tensors do not fit the network: {first_few(complaints, separator='; ')}")
    model.load_state_dict(tensors)


def first_few(names: Sequence[str], *, separator: str = ", ") -> str:
    """Some of the names for a message, and how many more there are."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return separator.join(names[:MOST_NAMED]) + more
