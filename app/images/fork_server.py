"""The processes that decode, from the inside. `app/images/worker.py` starts and ends them.

One process, the fork server, imports what decoding needs and then only forks workers on request. A worker starts within
milliseconds and shares the fork server's memory. No process that has threads or CUDA is ever forked. A worker answers
requests until its socket is closed.
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
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from app.machine import IMAGES_NICENESS

# From an upload, how many pixels it claims to have, and whether to make a thumbnail, to an answer
Work = Callable[[bytes, int, bool], bytes]

REQUEST = struct.Struct("!QQ?")  # the bytes of the upload that follows, then both arguments of `Work`
ANSWER = struct.Struct("!Q")  # before every answer: how many bytes of it follow
ORDER = struct.Struct("!i")  # to the fork server, for a new process: the one to end before, or 0
REPORT = struct.Struct("!ii")  # from it: the new process, or 0 where none can be forked, and how the old one ended

HAD_TO_BE_ENDED = 1  # in a report, of a process that did not end by itself; else its exit code, a signal's negative
ENDING_NAPS = 2000  # of a millisecond each, in which a process has to end once its socket is closed

_PR_SET_PDEATHSIG = 1  # prctl(2)


def main() -> None:
    """Standard input holds the work and the memory of each worker in bytes, pickled. Orders come from the socket whose
    number is the argument.
    """
    # A signal that stops the service may go to its whole group, but images that are being decoded have to be finished.
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, signal.SIG_IGN)
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libtiff writes warnings about files there
    control = socket.socket(fileno=int(sys.argv[1]))
    with suppress(EOFError, pickle.UnpicklingError, ConnectionError):  # the service may end at any moment
        _fork_on_orders(control, *pickle.load(sys.stdin.buffer))


def _fork_on_orders(control: socket.socket, work: Work, memory_bytes: int) -> None:
    while True:
        order, descriptors, _, _ = socket.recv_fds(control, ORDER.size, 1)
        if not order:
            return  # the service has ended; the workers end with this process
        (old,) = ORDER.unpack(order)
        ended = _end(old) if old else 0
        (descriptor,) = descriptors
        fork_server = os.getpid()
        try:
            child: int | None = os.fork()
        except OSError:  # no memory, or too many processes; the workers that are there go on
            child = None
        if child == 0:
            control.close()
            _serve(socket.socket(fileno=descriptor), work, memory_bytes=memory_bytes, fork_server=fork_server)
            os._exit(0)
        os.close(descriptor)
        control.sendall(REPORT.pack(child or 0, ended))


def _end(process: int) -> int:
    """The exit code of a process that has ended, or HAD_TO_BE_ENDED."""
    for _ in range(ENDING_NAPS):  # and not until some time: a pause of the machine counts as one nap
        try:
            ended, status = os.waitpid(process, os.WNOHANG)
        except ChildProcessError:
            return -signal.SIGKILL  # of an earlier fork server, with which it ended
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(process, signal.SIGKILL)  # the number is still its own, because it has not been waited for
    os.waitpid(process, 0)
    return HAD_TO_BE_ENDED


def _serve(connection: socket.socket, work: Work, *, memory_bytes: int, fork_server: int) -> None:
    """A worker."""
    _end_with(fork_server)
    os.nice(IMAGES_NICENESS)
    _limit(memory_bytes)
    with suppress(OSError):  # it may be read-only
        Path("/proc/self/oom_score_adj").write_text("1000")  # where memory is short a worker is ended, not the service
    warnings.simplefilter("ignore")  # Pillow's are about the images themselves
    logging.disable()
    while len(header := connection.recv(REQUEST.size, socket.MSG_WAITALL)) == REQUEST.size:  # less: it is closed
        data_bytes, pixels, thumbnail = REQUEST.unpack(header)
        data = connection.recv(data_bytes, socket.MSG_WAITALL)  # Pillow reads these bytes, without a copy
        if len(data) < data_bytes:
            return
        answer = work(data, pixels, thumbnail)
        connection.sendall(ANSWER.pack(len(answer)) + answer)


def _end_with(fork_server: int) -> None:
    """End this process with the fork server, even in the middle of an image. That ends with the service, even when the
    service is killed.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != fork_server:  # it had already ended before the call
        os._exit(0)


def _limit(memory_bytes: int) -> None:
    """Let allocations beyond `memory_bytes` fail: a file can ask for any amount in places that no header shows."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # images that crash workers must not fill the disk
    if sys.platform == "linux":
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = taken + memory_bytes if most == resource.RLIM_INFINITY else min(taken + memory_bytes, most)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    main()
