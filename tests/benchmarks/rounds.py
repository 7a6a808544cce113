"""Measurements that take turns, so that a change of the machine's speed affects them alike."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from tqdm import tqdm

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
