"""A picture of a model itself, in its bundle, and the numbers in it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Picture:
    name: str
    title: str
    png: bytes
    numbers: Any  # JSON

    def write(self, folder: Path) -> None:
        """Write NAME.png and NAME.json into the folder."""
        (folder / f"{self.name}.png").write_bytes(self.png)
        (folder / f"{self.name}.json").write_text(json.dumps(self.numbers), encoding="utf-8")
