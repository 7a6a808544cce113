"""Progress of an export on the terminal, where its steps cannot be counted."""

from collections.abc import Iterator
from contextlib import contextmanager

from model.progress import bars


@contextmanager
def working(title: str, *, leave: bool = True) -> Iterator[None]:
    """A bar for work whose steps cannot be counted."""
    with bars(leave=leave) as shown:
        task = shown.add_task(title, total=None)
        yield
        shown.update(task, total=1, completed=1)
