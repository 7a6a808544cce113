from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from model.checkpoints.load import load_checkpoint as load_checkpoint


def __getattr__(name: str) -> Any:
    """`load_checkpoint` is imported when it is first used: it needs PyTorch, which takes seconds."""
    if name != "load_checkpoint":
        raise AttributeError(name)
    from model.checkpoints.load import load_checkpoint

    return load_checkpoint
