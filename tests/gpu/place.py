"""Where a section of tests/gpu/check.py finds bundles, and what it gives back."""

from dataclasses import dataclass
from pathlib import Path

from app.bundle import Bundle, load_bundle
from tests.benchmarks.record import Rows

Tables = dict[str, Rows]


@dataclass(frozen=True, kw_only=True)
class Place:
    folder: Path  # a bundle in each of its folders, named as in tests/gpu/bundles.py
    names: tuple[str, ...]  # of the bundles to look at; none: all that suit the section
    seconds: float  # of each load on a server

    def bundles(self, *wanted: str) -> dict[str, Bundle]:
        """Those of `wanted` that are there, by name; without `wanted`, all."""
        there = sorted(folder.name for folder in self.folder.iterdir() if (folder / "manifest.json").exists())
        chosen = [name for name in there if not wanted or name in wanted]
        return {name: load_bundle(self.folder / name) for name in chosen if not self.names or name in self.names}
