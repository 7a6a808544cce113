"""Progress bars of an export on the terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

WIDTH = 26  # characters of a title, so that bars are below one another


def bars(*, leave: bool = True) -> Progress:
    """Bars with the time that has passed. Those that `leave` stay: where stderr is no terminal, as lines at the end."""
    console = Console(stderr=True)
    columns = SpinnerColumn(), TextColumn(f"{{task.description:<{WIDTH}}}"), BarColumn(), TaskProgressColumn()
    shown = leave or console.is_terminal
    return Progress(*columns, TimeElapsedColumn(), console=console, transient=not leave, disable=not shown)


@contextmanager
def working(title: str, *, leave: bool = True) -> Iterator[None]:
    """A bar for work whose steps cannot be counted."""
    with bars(leave=leave) as shown:
        task = shown.add_task(title, total=None)
        yield
        shown.update(task, total=1, completed=1)
