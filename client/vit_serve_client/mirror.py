"""A folder with a file for each image, at the place that the image has below its own folder."""

import os
import shutil
from collections.abc import Iterable
from errno import EILSEQ, EINVAL, ENAMETOOLONG, ENOENT
from pathlib import Path

# What the system says of a name: it is too long, or has a character that the file system refuses, such as a colon.
NO_NAME = {ENAMETOOLONG, EINVAL, EILSEQ, *([ENOENT] if os.name == "nt" else [])}


class Mirror:
    def __init__(self, folder: Path, base: Path, suffix: str) -> None:
        """`base` is the folder of the images, as `files.base` gives it; `suffix` is set behind their names."""
        self.folder, self._base, self._suffix = folder, base, suffix

    def path(self, image: str) -> Path:
        """Without what leads out of the folder."""
        path = Path(image)
        below = path.relative_to(self._base) if path.is_relative_to(self._base) else path
        parts = (part for part in below.parts if part not in (below.anchor, ".."))
        return self.folder.joinpath(*parts).with_name(f"{path.name}{self._suffix}")

    def write(self, image: str, content: bytes) -> bool:
        """False if no file can have the name, here or in this file system."""
        try:
            self._made(image).write_bytes(content)
        except OSError as error:
            if error.errno not in NO_NAME:
                raise
            return False
        return True

    def copy(self, image: str) -> None:
        shutil.copyfile(image, self._made(image))

    def pair(self, images: Iterable[str]) -> tuple[str, str] | None:
        """Two images that have the same path."""
        owners: dict[Path, str] = {}
        for image in images:
            if (owner := owners.setdefault(self.path(image), image)) != image:
                return owner, image
        return None

    def _made(self, image: str) -> Path:
        path = self.path(image)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path
