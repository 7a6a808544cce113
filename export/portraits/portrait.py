"""A picture of the model itself, and the numbers in it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.bundle import PICTURE_FORMATS, PictureFormat, picture_file


@dataclass(frozen=True, kw_only=True)
class Portrait:
    name: str
    title: str
    png: bytes
    numbers: dict[str, Any]

    def write(self, folder: Path) -> None:
        """Write both into the folder of a bundle."""
        contents: dict[PictureFormat, bytes] = {"png": self.png, "json": json.dumps(self.numbers).encode()}
        for kind in PICTURE_FORMATS:
            path = folder / picture_file(self.name, kind)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(contents[kind])
