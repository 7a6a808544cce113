"""Work for decoders that goes wrong on request: by the last bytes of what it is sent."""

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

    def __call__(self, request: bytearray) -> bytes:
        if request.endswith(CRASH):
            os.kill(os.getpid(), signal.SIGSEGV)
        if request.endswith(EXIT):
            os._exit(1)
        if request.endswith(SPIN):
            while True:
                pass
        if request.endswith(SLEEP):
            time.sleep(600)
        if request.endswith(PAUSE):
            time.sleep(1)
        if request.endswith(GARBLE):
            return b"\xff" * 100
        if request.endswith(HOARD):
            bytearray(2**34)
        return self._work(request)


def whoami(request: bytearray) -> bytes:
    """The number of the process that answers, and what it was sent."""
    return f"{os.getpid()} ".encode() + request
