"""Tensors into a network, strictly."""

from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError
from model.vit import VisionTransformer

MOST_NAMED = 8  # keys in a message


def assign(model: VisionTransformer, tensors: dict[str, Tensor]) -> None:
    """Copy tensors into parameters of the same name and shape. Raises CheckpointError unless all of both match."""
    expected = model.state_dict()
    complaints = [
        *(f"unused: {key}" for key in sorted(tensors.keys() - expected.keys())),
        *(f"missing: {key}" for key in sorted(expected.keys() - tensors.keys())),
        *(
            f"{key} is {tuple(tensors[key].shape)}, not {tuple(expected[key].shape)}"
            for key in sorted(expected.keys() & tensors.keys())
            if tensors[key].shape != expected[key].shape
        ),
    ]
    if complaints:
        more = f" and {len(complaints) - MOST_NAMED} more" if len(complaints) > MOST_NAMED else ""
        raise CheckpointError("the tensors do not fit the network: " + "; ".join(complaints[:MOST_NAMED]) + more)
    model.load_state_dict(tensors)
