"""`from vit_serve import BatchClassifier`: labels, maps and embeddings of many images, without HTTP."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.batch import BatchClassifier

__all__ = ["BatchClassifier"]


def __getattr__(name: str) -> Any:
    """Only when it is asked for: the command imports this package too."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from app.batch import BatchClassifier

    return BatchClassifier


def __dir__() -> list[str]:
    return __all__
