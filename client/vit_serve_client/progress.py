"""How far a run is, in the last line of a terminal. A file or a pipe gets sentences alone."""

import math
import re
import sys
import time
from datetime import timedelta
from typing import Self

REDRAWN_EVERY_S = 0.1
CLEARED = "\r\033[K"  # what stands in the last line
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")  # by a terminal


def printable(sentence: str) -> str:
    """The sentence with escapes, such as \\x1b, for whatever moves the cursor or turns the text around."""
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), sentence)


def tell(sentence: str) -> None:
    """On standard error; in a terminal above the line of a Progress."""
    sys.stderr.write(f"{CLEARED if sys.stderr.isatty() else ''}{printable(sentence)}\n")


class Progress:
    def __init__(self, total: int, *, done: int) -> None:
        """`done` is what an earlier run did."""
        self._total, self._done, self._earlier = total, done, done
        self._start, self._drawn, self._refusals = time.monotonic(), -math.inf, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._draw("\n")

    def step(self, *, refusals: int = 0) -> None:
        """An image is done. `refusals` of requests there were so far."""
        self._done, self._refusals = self._done + 1, refusals
        if time.monotonic() >= self._drawn + REDRAWN_EVERY_S:
            self._draw()

    def _draw(self, end: str = "") -> None:
        if not sys.stderr.isatty():
            return
        self._drawn = time.monotonic()
        line = f"{self._done:,} of {self._total:,} images"
        if count := self._done - self._earlier:
            rate = count / (self._drawn - self._start)
            left = timedelta(seconds=round((self._total - self._done) / rate))
            line += f", {rate:.1f} per second, {left} left"
        if self._refusals:
            line += f", {self._refusals:,} refusals"
        sys.stderr.write(f"{CLEARED}{line}{end}")
