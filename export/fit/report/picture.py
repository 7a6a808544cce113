"""A picture of a report, and the numbers in it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Picture:
    name: str
    title: str
    caption: str  # how to read it
    png: bytes
    numbers: Any  # JSON

    def write(self, folder: Path) -> None:
        (folder / f"{self.name}.png").write_bytes(self.png)
        (folder / f"{self.name}.json").write_text(json.dumps(self.numbers, indent=1) + "\n", encoding="utf-8")
