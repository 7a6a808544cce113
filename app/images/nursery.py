"""The processes that decode, from the inside. `app/images/pool.py` starts and ends them.

One process, the nursery, imports what decoding needs and then does nothing but fork workers on request: a worker costs
milliseconds and shares the nursery's memory, and nothing forks a process that has threads or CUDA. A worker answers
requests until its socket closes.
"""

import ctypes
import logging
import os
import pickle
import resource
import signal
import socket
import struct
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from app.machine import IMAGES_NICENESS

Work = Callable[[bytearray], bytes]

SIZE = struct.Struct("!Q")  # before every request and every answer
ORDER = struct.Struct("!iQ")  # to the nursery: the process to end, if any, and how much memory the new one may take
REPORT = struct.Struct("!ii")  # from it: the new process, and how the old one ended: a signal's number is negative

_PR_SET_PDEATHSIG = 1  # prctl(2)


def main() -> None:
    """The nursery. Standard input has the pickled work; the socket whose number is the argument has the orders."""
    # Those who stop the service signal its whole group; what is in work has to be finished first.
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, signal.SIG_IGN)
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libtiff writes there what it thinks of a file
    control = socket.socket(fileno=int(sys.argv[1]))
    with suppress(EOFError, pickle.UnpicklingError, ConnectionError):  # the service may end at any moment
        _nurse(control, pickle.load(sys.stdin.buffer))


def _nurse(control: socket.socket, work: Work) -> None:
    while True:
        order, descriptors, _, _ = socket.recv_fds(control, ORDER.size, 1)
        if not order:
            return  # the service has ended; the workers end with this process
        old, memory = ORDER.unpack(order)
        ended = _end(old) if old else 0
        (descriptor,) = descriptors
        nursery = os.getpid()
        child = os.fork()
        if child == 0:
            control.close()
            _serve(socket.socket(fileno=descriptor), work, memory=memory, nursery=nursery)
            os._exit(0)
        os.close(descriptor)
        control.sendall(REPORT.pack(child, ended))


def _end(process: int) -> int:
    os.kill(process, signal.SIGKILL)  # nobody else has its number yet: it has not been waited for
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _serve(connection: socket.socket, work: Work, *, memory: int, nursery: int) -> None:
    """A worker."""
    _end_with(nursery)
    os.nice(IMAGES_NICENESS)
    _limit(memory)
    warnings.simplefilter("ignore")  # Pillow says what is wrong with a picture, which nobody here can change
    logging.disable()
    while (request := _receive(connection)) is not None:
        answer = work(request)
        connection.sendall(SIZE.pack(len(answer)) + answer)


def _receive(connection: socket.socket) -> bytearray | None:
    header = _exactly(connection, SIZE.size)
    return None if header is None else _exactly(connection, *SIZE.unpack(header))


def _exactly(connection: socket.socket, size: int) -> bytearray | None:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        received = connection.recv_into(view)
        if not received:
            return None
        view = view[received:]
    return data


def _end_with(nursery: int) -> None:
    """Even in the middle of a picture, and even if the service is killed: its end is the nursery's end."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != nursery:  # it has ended already
        os._exit(0)


def _limit(memory: int) -> None:
    """Let allocations beyond `memory` bytes fail: a file can ask for any amount in places that no header shows."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a picture that crashes workers shall not fill the disk
    if sys.platform == "linux":
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + memory, taken + memory))


if __name__ == "__main__":
    main()
