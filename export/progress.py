"""What a person sees on the terminal while an export works: bars that move several times a second."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

WIDTH = 26  # characters of a title, so that bars are below one another


def bars() -> Progress:
    """Bars with the time that has passed. Where stderr is no terminal, each is one line when it ends."""
    columns = SpinnerColumn(), TextColumn(f"{{task.description:<{WIDTH}}}"), BarColumn(), TaskProgressColumn()
    return Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True))


@contextmanager
def working(title: str) -> Iterator[None]:
    """A bar for work whose steps cannot be counted."""
    with bars() as shown:
        task = shown.add_task(title, total=None)
        yield
        shown.update(task, total=1, completed=1)
