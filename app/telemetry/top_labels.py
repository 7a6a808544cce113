"""How often each label was the most likely one, in a bounded number of time series."""

from collections.abc import Sequence

from prometheus_client import Counter

MAX_NAMES = 50
OTHER = "other"  # all labels without a name of their own


class TopLabels:
    """Counts under the names of at most MAX_NAMES labels. A model that has more names those which come first.

    Belongs to the event loop.
    """

    def __init__(self, counter: Counter, labels: Sequence[str]) -> None:
        """`counter` has one label, its name. `labels` are those of the model, (classes,)."""
        self._counter, self._labels = counter, labels
        self._names: set[str] = set()  # two classes may have the same
        self._of_class: list[Counter | None] = [None] * len(labels)  # none before it was counted
        if len(set(labels)) <= MAX_NAMES:
            for index in range(len(labels)):
                self._name(index)

    def count(self, index: int) -> None:
        """`index` is that of the class."""
        (self._of_class[index] or self._name(index)).inc()

    def _name(self, index: int) -> Counter:
        name = self._labels[index]
        if name not in self._names and len(self._names) == MAX_NAMES:
            name = OTHER
        else:
            self._names.add(name)
        child = self._of_class[index] = self._counter.labels(name)
        return child
