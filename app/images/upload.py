"""The bytes of one client as they came: an image, or a body that has some."""

import hashlib
from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property
from itertools import accumulate

Buffer = bytes | bytearray | memoryview

SMALL_BYTES = 2**14  # smaller pieces are joined: each takes memory of its own, and a turn of every loop over them


class Upload:
    """First all pieces are added, and then they are read. Joined, they would take their memory twice."""

    def __init__(self, pieces: Iterable[Buffer] = (), *, name: str | None = None) -> None:
        """`name` is that of the file in a form."""
        self.name = name
        self.pieces = [*pieces]

    def add(self, piece: bytes) -> None:
        last = self.pieces[-1] if self.pieces else None
        if isinstance(last, bytearray) and len(last) < SMALL_BYTES:
            last += piece
        else:
            self.pieces.append(bytearray(piece) if len(piece) < SMALL_BYTES else piece)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @cached_property
    def _ends(self) -> list[int]:
        return [*accumulate(map(len, self.pieces))]

    def part(self, at: int, size: int) -> "Upload":
        """So many bytes from this position, without a copy; fewer where the upload ends."""
        part = Upload()
        for place in range(bisect_right(self._ends, at), len(self.pieces)):
            if size <= 0:
                break
            start = at - self._ends[place] + len(self.pieces[place])
            part.pieces.append(view := memoryview(self.pieces[place])[start : start + size])
            at, size = at + len(view), size - len(view)
        return part

    def read(self, at: int, size: int) -> bytes:
        return b"".join(self.part(at, size).pieces)

    def sha256(self) -> bytes:
        digest = hashlib.sha256()
        for piece in self.pieces:
            digest.update(piece)
        return digest.digest()
