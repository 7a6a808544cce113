"""How hatchling makes a wheel of this repository, and what the wheel depends on: the groups of pyproject.toml."""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).parent
EXTRAS = {  # of the wheel, and the groups that it adds to those of every installation
    "export": ("export", "zero-shot"),
    "cuda": ("cuda",),
    "otel": ("otel",),
    "ray": ("ray",),
}


class Tree(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # this folder itself, on Python's path
            return
        sys.path.insert(0, str(ROOT))
        from wheel_tree import HOME, write_tree

        self._made = TemporaryDirectory()
        build_data["infer_tag"] = write_tree(Path(self._made.name))
        build_data["pure_python"] = not build_data["infer_tag"]
        build_data["force_include"][self._made.name] = HOME

    def finalize(self, *_: object) -> None:
        if hasattr(self, "_made"):
            self._made.cleanup()


class Dependencies(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
        client = tomllib.loads((ROOT / "client/pyproject.toml").read_text())["project"]
        always = [*_of(groups, "serve"), *client["dependencies"]]
        metadata["dependencies"] = always
        metadata["optional-dependencies"] = client["optional-dependencies"] | {
            extra: [need for name in names for need in _of(groups, name) if need not in always]
            for extra, names in EXTRAS.items()
        }


def _of(groups: dict[str, Any], name: str) -> Iterator[str]:
    for entry in groups[name]:
        yield from _of(groups, entry["include-group"]) if isinstance(entry, dict) else [entry]
