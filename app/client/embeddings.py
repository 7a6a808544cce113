"""The array of embeddings: a row for each image, NaN until it is filled. A text file beside it names the rows."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

Row = npt.NDArray[np.float32]  # (features,)


def open_rows(path: Path, images: Sequence[str], features: int) -> dict[str, Row]:
    """The rows of a file, by image. Those that it has already are kept.

    Raises ValueError for a file that this program has not written, and for one of another model.
    """
    kept = _kept(path)
    if any(row.shape != (features,) for row in kept.values()):
        raise ValueError(f"{path} has embeddings of another model: give another file")
    if list(kept) == list(images):
        return dict(zip(images, np.lib.format.open_memmap(path, mode="r+"), strict=True))
    fresh = path.with_name(f".{path.name}.new")
    array = np.lib.format.open_memmap(fresh, mode="w+", dtype=np.float32, shape=(len(images), features))
    for row, image in zip(array, images, strict=True):
        row[:] = kept.get(image, np.nan)
    fresh.replace(path)
    names = "".join(f"{image}\n" for image in images)
    path.with_suffix(".txt").write_text(names, encoding="utf-8", errors="surrogateescape")
    return dict(zip(images, array, strict=True))


def _kept(path: Path) -> dict[str, Row]:
    if not path.exists():
        return {}
    try:
        names = path.with_suffix(".txt").read_text(encoding="utf-8", errors="surrogateescape").split("\n")[:-1]
        return dict(zip(names, np.load(path, mmap_mode="r"), strict=True))
    except (OSError, EOFError, TypeError, ValueError):
        raise ValueError(f"{path} exists, and this program has not written it") from None
