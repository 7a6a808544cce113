"""Work for worker processes that goes wrong on request: by the last bytes of the upload."""

import os
import signal
import time

from app.images.nursery import Work

CRASH, EXIT, SPIN, SLEEP, PAUSE, GARBLE, HOARD = (
    f"<{what}>".encode() for what in ("crash", "exit", "spin", "sleep", "pause", "garble", "hoard")
)


class Saboteur:
    """Picklable, and named so that another process can import it."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def __call__(self, request: bytes, data: bytes) -> bytes:
        if data.endswith(CRASH):
            os.kill(os.getpid(), signal.SIGSEGV)
        if data.endswith(EXIT):
            os._exit(1)
        if data.endswith(SPIN):
            while True:
                pass
        if data.endswith(SLEEP):
            time.sleep(600)
        if data.endswith(PAUSE):
            time.sleep(1)
        if data.endswith(GARBLE):
            return b"\xff" * 100
        if data.endswith(HOARD):
            bytearray(2**34)
        return self._work(request, data)


def whoami(request: bytes, data: bytes) -> bytes:
    """The number of the process that answers, and what it was sent."""
    return b"%d %s %s" % (os.getpid(), request, data)
