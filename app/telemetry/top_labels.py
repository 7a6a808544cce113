"""How often each label was the most likely one, in a bounded number of time series."""

from collections.abc import Callable, Sequence

MAX_NAMES = 50
OTHER = "other"  # all labels without a name of their own

Increment = Callable[[], None]


class TopLabels:
    """Counts under the names of at most MAX_NAMES labels. A model that has more names those which come first.

    Belongs to the event loop.
    """

    def __init__(self, series: Callable[[str], Increment], labels: Sequence[str]) -> None:
        """`series` makes that of a name. `labels` are those of the model, (classes,)."""
        self._series, self._labels = series, labels
        self._names: set[str] = set()  # two classes may have the same
        self._of_class: list[Increment | None] = [None] * len(labels)  # none before the first is counted
        if len(set(labels)) <= MAX_NAMES:
            for index in range(len(labels)):
                self._name(index)

    def count(self, index: int) -> None:
        """`index` is that of the class."""
        (self._of_class[index] or self._name(index))()

    def _name(self, index: int) -> Increment:
        name = self._labels[index]
        if name not in self._names and len(self._names) == MAX_NAMES:
            name = OTHER
        else:
            self._names.add(name)
        increment = self._of_class[index] = self._series(name)
        return increment
