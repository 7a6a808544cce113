"""Progress bars on the terminal."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

T = TypeVar("T")

LINES_S = 60.0
WIDTH = 26  # characters of a title, so that bars are below one another


def track(items: Iterable[T], title: str, *, of: int | None = None) -> Iterator[T]:
    """The items, with a bar while they are taken. `of` is their number, where they have no length."""
    with _bars() as shown:
        yield from shown.track(items, of, description=title)


@contextmanager
def working(title: str, *, leave: bool = True) -> Iterator[None]:
    """A bar for work whose steps cannot be counted."""
    with _bars(leave=leave) as shown:
        task = shown.add_task(title, total=None)
        yield
        shown.update(task, total=1, completed=1)


@contextmanager
def steps(title: str, *, done: int, of: int) -> Iterator[Callable[[int, float], None]]:
    """A bar, and what to call with the steps that are done and the loss. Where stderr is not a terminal it has lines
    too, LINES_S apart, so that a log shows that the run goes on.
    """
    with _bars() as shown:
        task, said = shown.add_task(title, total=of, completed=done), time.monotonic()

        def advance(step: int, loss: float) -> None:
            nonlocal said
            shown.update(task, completed=step, description=f"{title}, loss {loss:.3f}")
            if not shown.console.is_terminal and time.monotonic() - said >= LINES_S:
                shown.console.print(f"{title}: step {step:,} of {of:,}, loss {loss:.3f}")
                said = time.monotonic()

        yield advance


def _bars(*, leave: bool = True) -> Progress:
    """Bars with the time that has passed. Bars that `leave` stay: outside a terminal, as lines at the end."""
    console = Console(stderr=True)
    columns = SpinnerColumn(), TextColumn(f"{{task.description:<{WIDTH}}}"), BarColumn(), TaskProgressColumn()
    disable = not (leave or console.is_terminal)
    return Progress(*columns, TimeElapsedColumn(), console=console, transient=not leave, disable=disable)
