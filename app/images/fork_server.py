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

from app.machine import IMAGES_NICENESS, yield_by

# From what is asked, the bytes of an upload, and how many pixels it claims to have, to an answer
Work = Callable[[int, bytes, int], bytes]

REQUEST = struct.Struct("!BQQ")  # what is asked, the bytes of the upload that follows, and the pixels
ANSWER = struct.Struct("!Q")  # before every answer: how many bytes of it follow
ORDER = struct.Struct("!i")  # to the fork server, for a new process: the one to end before, or 0
REPORT = struct.Struct("!ii")  # from it: the new process, or 0 where none can be forked, and how the old one ended

# What one image may cost, by the pixels that it claims to have. Photographs take a tenth of this time in any format, at
# most 50 ns a pixel, and noise in AVIF takes 330. A byte of JSON counts as a pixel: empty lists take 24 bytes for each.
CPU_S, CPU_S_PER_PIXEL = 0.5, 5e-7
MEMORY_BYTES = 256 * 2**20
MEMORY_BYTES_PER_PIXEL = 24  # the most of any format: an animated WebP, of which libwebp keeps three canvases
READY = b"!"  # from a worker, before its first request

HAD_TO_BE_ENDED = 1  # in a report, of a process that did not end by itself; else its exit code, a signal's negative
ENDING_NAPS = 2000  # of a millisecond each, in which a process has to end once its socket is closed

_PR_SET_PDEATHSIG = 1  # prctl(2)


def main() -> None:
    """Standard input holds the work and the pixels of the largest image, pickled. Orders come from the socket whose
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


def _fork_on_orders(control: socket.socket, work: Work, max_pixels: int) -> None:
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
            _serve(socket.socket(fileno=descriptor), work, max_pixels=max_pixels, fork_server=fork_server)
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


def _serve(connection: socket.socket, work: Work, *, max_pixels: int, fork_server: int) -> None:
    """A worker. The kernel counts the time of each image and ends the worker with SIGPROF: a pause of the machine, or a
    busy neighbour, costs no image.
    """
    _end_with(fork_server)
    yield_by(IMAGES_NICENESS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # images that crash workers must not fill the disk
    before = _address_space()
    _limit_address_space(before + _memory_bytes(max_pixels), for_good=True)
    with suppress(OSError):  # it may be read-only
        Path("/proc/self/oom_score_adj").write_text("1000")  # where memory is short a worker is ended, not the service
    warnings.simplefilter("ignore")  # Pillow's are about the images themselves
    logging.disable()
    connection.sendall(READY)
    while len(header := connection.recv(REQUEST.size, socket.MSG_WAITALL)) == REQUEST.size:  # less: it is closed
        question, data_bytes, pixels = REQUEST.unpack(header)
        _limit_address_space(before + data_bytes + _memory_bytes(pixels))
        data = connection.recv(data_bytes, socket.MSG_WAITALL)  # Pillow reads these bytes, without a copy
        if len(data) < data_bytes:
            return
        signal.setitimer(signal.ITIMER_PROF, CPU_S + CPU_S_PER_PIXEL * pixels)
        answer = work(question, data, pixels)
        signal.setitimer(signal.ITIMER_PROF, 0)
        connection.sendall(ANSWER.pack(len(answer)) + answer)
        del data, answer  # they would count beside the next one


def _end_with(fork_server: int) -> None:
    """End this process with the fork server, even in the middle of an image. That ends with the service, even when the
    service is killed.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != fork_server:  # it had already ended before the call
        os._exit(0)


def _memory_bytes(pixels: int) -> int:
    return MEMORY_BYTES + MEMORY_BYTES_PER_PIXEL * pixels


def _address_space() -> int:
    """Bytes of this process; 0 where there is no limit of them to set."""
    if sys.platform != "linux":
        return 0
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _limit_address_space(limit: int, *, for_good: bool = False) -> None:
    """Let allocations beyond fail: a file can ask for any amount in places that no header shows."""
    if sys.platform == "linux":
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit if for_good else most))


if __name__ == "__main__":
    main()
