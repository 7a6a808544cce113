"""The bytes of one image as they arrive.

To join pieces at the end would take their memory twice. A buffer that grows is copied, and leaves holes in the heap
into which the next one does not fit. So all but the start of an upload lies outside the heap, and its memory goes back
to the system at the end.
"""

import hashlib
import mmap
from collections.abc import Iterator

START_BYTES = 2**18  # on the heap: most images are smaller, and new pages from the system take longer
LARGEST_BLOCK_BYTES = 2**20


class Upload:
    """Grows by what arrives and not by what a client declares: a block is at most as large as all that precedes it."""

    def __init__(self, data: bytes = b"", *, name: str | None = None) -> None:
        """`name` is that of the file in a form."""
        self.name = name
        self._start = bytearray()
        self._blocks: list[mmap.mmap] = []  # each filled before the next is made
        self._size = 0
        self._room = 0  # in the last block
        self.add(data)

    def __len__(self) -> int:
        return self._size

    def add(self, piece: bytes | memoryview) -> None:
        """Copies the piece."""
        rest = memoryview(piece)
        while rest:
            if self._size < START_BYTES:
                taken = rest[: START_BYTES - self._size]
                self._start += taken
            else:
                if not self._room:
                    self._room = min(self._size, LARGEST_BLOCK_BYTES)
                    self._blocks.append(mmap.mmap(-1, self._room, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
                block, taken = self._blocks[-1], rest[: self._room]
                filled = len(block) - self._room
                block[filled : filled + len(taken)] = taken
                self._room -= len(taken)
            self._size += len(taken)
            rest = rest[len(taken) :]

    def parts(self) -> Iterator[memoryview]:
        """All bytes in order, without a copy: at least one part, which may be empty."""
        left = self._size
        for buffer in (memoryview(self._start), *(memoryview(block) for block in self._blocks)):
            yield buffer[:left]  # only the last block may have room
            left -= len(buffer)

    def read(self, at: int, size: int) -> bytes:
        """So many bytes from this position, fewer where the upload ends."""
        pieces = []
        for part in self.parts():
            pieces.append(part[at : at + size])
            size -= len(pieces[-1])
            if not size:
                break
            at = max(at - len(part), 0)
        return b"".join(pieces)

    def sha256(self) -> bytes:
        digest = hashlib.sha256()
        for part in self.parts():
            digest.update(part)
        return digest.digest()
