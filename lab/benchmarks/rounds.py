"""Measurements that take turns, so that a change of the machine's speed affects them alike, and how they are shown."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from tqdm import tqdm

from lab.benchmarks.load import percentile

Key = TypeVar("Key")
Result = TypeVar("Result")


def in_turn(
    measurements: Mapping[Key, Callable[[], Result]], rounds: int, *, desc: str = "rounds"
) -> dict[Key, list[Result]]:
    """The results of each measurement, one per round."""
    results: dict[Key, list[Result]] = {key: [] for key in measurements}
    for _ in tqdm(range(rounds), desc=desc):
        for key, measure in measurements.items():
            results[key].append(measure())
    return results


def quartiles(values: list[float], digits: int) -> str:
    """The median, and in brackets the first and the third quartile."""
    first, median, third = statistics.quantiles(values, n=4, method="inclusive")
    return f"{median:.{digits}f} ({first:.{digits}f} to {third:.{digits}f})"


def ratios(ours: list[float], theirs: list[float]) -> list[float]:
    """Round by round."""
    return [mine / other for mine, other in zip(ours, theirs, strict=True)]


def times(milliseconds: list[float]) -> str:
    """Their p50 and p99; nothing where there are none."""
    return " / ".join(f"{percentile(milliseconds, share):.0f}" for share in (0.5, 0.99) if milliseconds)


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """In Markdown."""
    lines = [" | ".join(rows[0]), " | ".join("---" for _ in rows[0])]
    lines += [" | ".join(str(value) for value in row.values()) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)
