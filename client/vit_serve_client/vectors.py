"""The embeddings of a run, for one Parquet file. Until `finish` they are float32 in a file beside it, without names: in
the order of the images in the output.
"""

import os
import struct
from collections.abc import Sequence
from pathlib import Path

from vit_serve_client import parquet
from vit_serve_client.bulk import GivenUp
from vit_serve_client.lock import locked
from vit_serve_client.output import OtherRun


class Vectors:
    """`write` an embedding before the row of its image, so that the output has no image without one."""

    def __init__(self, path: Path, *, length: int) -> None:
        """`length` is that of an embedding. Raises OtherRun while another run writes the file."""
        self._path, self._part, self._length, self._count = path, parquet.part_of(path), length, 0
        try:
            self._file = locked(self._part)
        except ValueError as other:
            raise OtherRun(str(other)) from None

    def begin(self, images: Sequence[str]) -> None:
        """`images` were embedded by earlier runs. Raises OtherRun without their embeddings."""
        try:
            if self._path.exists() and not self._file.tell():
                self._restore(images)
        except BaseException as error:  # also where it is interrupted: another run restores all of them
            self._file.truncate(0)
            if isinstance(error, ValueError):
                raise OtherRun(f"{self._path} has other images than the output: give another --out") from None
            raise
        self._count = len(images)
        if self._file.tell() < self._size():
            raise OtherRun(f"the output has images that {self._path} does not have: give another --out")
        self._file.truncate(self._size())

    def write(self, image: str, vector: Sequence[float]) -> None:
        if len(vector) != self._length:
            raise GivenUp(f"the embedding of {image} has {len(vector)} numbers, not {self._length}")
        self._file.write(_packed(vector))
        self._file.flush()
        self._count += 1
        self._check()

    def finish(self, images: Sequence[str]) -> None:
        """`images` are all that are embedded, in the order of the output."""
        self._check()
        parquet.write_vectors(self._path, images, self._part, self._length)
        self._remove()

    def close(self) -> None:
        if not self._file.closed and not os.fstat(self._file.fileno()).st_size:
            self._remove()
        self._file.close()

    def _remove(self) -> None:
        self._file.close()  # first, for Windows
        self._part.unlink(missing_ok=True)

    def _restore(self, images: Sequence[str]) -> None:
        """Raises ValueError for a file of other images."""
        for image, (named, vector) in zip(images, parquet.vectors(self._path), strict=True):
            if image != named or len(vector) != self._length:
                raise ValueError
            self._file.write(_packed(vector))

    def _check(self) -> None:
        """Raises GivenUp if another run wrote too, where the file system has no locks. The part then has vectors of
        both, so it is removed.
        """
        if self._part.stat().st_size != self._size():
            self._remove()
            raise GivenUp(f"another run wrote {self._part} too: give each an --out and --embeddings of its own")

    def _size(self) -> int:
        """Bytes of the part that has as many embeddings as are known."""
        return 4 * self._length * self._count


def _packed(vector: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(vector)}f", *vector)
