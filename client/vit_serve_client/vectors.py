"""The embeddings of a run, for one Parquet file. Until `finish` they are float32 in a file beside it, without names: in
the order of the images in the output.
"""

import struct
from collections.abc import Sequence
from pathlib import Path

from vit_serve_client import parquet
from vit_serve_client.bulk import GivenUp
from vit_serve_client.output import OtherRun


class Vectors:
    """`write` an embedding before the row of its image, so that the output has no image without one."""

    def __init__(self, path: Path, *, length: int) -> None:
        """`length` is that of an embedding."""
        self._path, self._part, self._length = path, parquet.part_of(path), length

    def begin(self, images: Sequence[str]) -> None:
        """`images` were embedded by earlier runs. Raises OtherRun without their embeddings."""
        try:
            if self._path.exists() and not self._part.exists():
                self._restore(images)
        except ValueError:
            raise OtherRun(f"{self._path} has other images than the output: give another --out") from None
        end = 4 * self._length * len(images)
        with self._part.open("ab") as file:
            if file.tell() < end:
                raise OtherRun(f"the output has images that {self._path} does not have: give another --out")
            file.truncate(end)

    def write(self, image: str, vector: Sequence[float]) -> None:
        if len(vector) != self._length:
            raise GivenUp(f"the embedding of {image} has {len(vector)} numbers, not {self._length}")
        with self._part.open("ab") as file:
            file.write(_packed(vector))

    def finish(self, images: Sequence[str]) -> None:
        """`images` are all that are embedded, in the order of the output."""
        parquet.write_vectors(self._path, images, self._part, self._length)
        self._part.unlink()

    def _restore(self, images: Sequence[str]) -> None:
        """Raises ValueError for a file of other images."""
        with self._part.open("wb") as file:
            for image, (named, vector) in zip(images, parquet.vectors(self._path), strict=True):
                if image != named or len(vector) != self._length:
                    self._part.unlink()
                    raise ValueError
                file.write(_packed(vector))


def _packed(vector: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(vector)}f", *vector)
