"""Work for worker processes that goes wrong on request: by the last bytes of the upload."""

import os
import resource
import signal
import time
from pathlib import Path
from typing import Any

from app.images.fork_server import Work

CRASH, EXIT, SPIN, BURN, SLEEP, HOARD, GATHER, HANG_UP = (
    f"<{what}>".encode() for what in ("crash", "exit", "spin", "burn", "sleep", "hoard", "gather", "hang up")
)


class Saboteur:
    """Picklable, and named so that another process can import it."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def __call__(self, asked: int, data: bytes, pixels: int) -> bytes:
        if data.endswith(CRASH):
            os.kill(os.getpid(), signal.SIGSEGV)
        if data.endswith(EXIT):
            os._exit(1)
        if data.endswith(SPIN):
            while True:
                pass
        if data.endswith(SLEEP):
            time.sleep(600)
        if data.endswith(BURN):  # a second of a processor
            until = time.process_time() + 1
            while time.process_time() < until:
                pass
        if data.endswith(HANG_UP):  # and live on
            os.closerange(3, 100)
            time.sleep(600)
        if data.endswith(HOARD):
            bytearray(2**34)
        if data.endswith(GATHER):
            bytearray(2**29)
        return self._work(asked, data, pixels)


class ForkUnlessFull(Saboteur):
    """Lets the fork server, which unpickles it, fork only while there is no file `full`."""

    def __init__(self, work: Work, full: Path) -> None:
        super().__init__(work)
        self._full = full

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        fork = os.fork

        def limited() -> int:
            if self._full.exists():
                raise BlockingIOError
            return fork()

        os.fork = limited


class WithoutLimits(Saboteur):
    """Where the system does not let a worker limit itself."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

        def refuse(*limit: object) -> None:
            raise PermissionError

        resource.setrlimit = refuse


def claim(width: int, height: int) -> bytes:
    """The beginning of a PNG of this size."""
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big")


def whoami(asked: int, data: bytes, pixels: int) -> bytes:
    """The number of the process that answers, and what it was sent."""
    return b"%d %d %d %s" % (os.getpid(), asked, pixels, data)


def babble(asked: int, data: bytes, pixels: int) -> bytes:
    return b"no answer that `pack` writes"
