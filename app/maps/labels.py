"""Labels as a client names them: by name, or by index."""

from collections.abc import Sequence

from app.errors import InvalidParameter
from app.maps.record import Maps


def find_class(maps: Maps, labels: tuple[str, ...], text: str | None) -> int:
    """Place among the explained classes of a label, given by its index or its name; None is the first one."""
    return 0 if text is None else maps.classes.tolist().index(index_of(text, labels, maps.classes.tolist()))


def find_index(maps: Maps, labels: tuple[str, ...], text: str | None) -> int:
    """The same as an index of `labels`."""
    return int(maps.classes[find_class(maps, labels, text)])


def index_of(text: str, labels: tuple[str, ...], likely: Sequence[int]) -> int:
    """The index of a label. A name goes before an index, and of equal names the first that is `likely`, else the
    first.

    Raises InvalidParameter for a label that the model does not have.
    """
    named = [index for index, label in enumerate(labels) if label == text]
    if named:
        return next((index for index in likely if index in named), named[0])
    if text in map(str, range(len(labels))):
        return int(text)
    last = len(labels) - 1
    raise InvalidParameter(f"The model has no such label: give a name as GET /model lists it, or 0 to {last}.")
