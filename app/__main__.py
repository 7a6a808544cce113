"""`python -m app`: run the server with settings from VIT_* variables. Signals end the process until the server runs.

make hands on SIGTERM alone; a process that it has started notices by itself that make was killed.

This file imports nothing that takes long. Until `exit_at_signals` is entered, SIGINT ends the process with a traceback,
and SIGTERM is lost on process 1 of a container: the kernel drops a signal for process 1 that has no handler.
"""

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

EXIT_WRONG_SETTING = 2
PR_SET_PDEATHSIG = 1  # of Linux's prctl.h


def main() -> None:
    open_standard_descriptors()
    if os.environ.get("BY_MAKE") and sys.platform == "linux":
        end_with_parent()
    with exit_at_signals():
        if sys.argv[1:]:
            answer(sys.argv[1:])
        from app import server  # takes half a second, in which a signal may come

        loaded = server.load()
    server.serve(*loaded)


def open_standard_descriptors() -> None:
    """Open /dev/null in place of those that were closed: a socket would get the number of one, and libuv ends the
    process when it closes a socket with such a number.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
            os.set_inheritable(opened, True)  # as the system leaves them: the decoders need theirs too
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def answer(arguments: list[str]) -> NoReturn:
    """End with the settings or the version on standard output, or say what is meant by other arguments."""
    from app.settings import VERSION, described, not_arguments

    if {"-h", "--help"} & {*arguments}:
        print(described())  # noqa: T201
    elif "--version" in arguments:
        print(f"vit-serve {VERSION}")  # noqa: T201
    else:
        print(f"cannot start: {not_arguments(arguments)}", file=sys.stderr)  # noqa: T201
        sys.exit(EXIT_WRONG_SETTING)
    sys.exit()


def end_with_parent() -> None:
    """Have the kernel send SIGTERM when the process that has started this one ends, however it ends."""
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


@contextmanager
def exit_at_signals() -> Iterator[None]:
    """SIGTERM and SIGINT end the process with 0, even while its main thread waits. To be entered by that thread.

    Python's handlers run in the main thread, between two of its instructions: never, when it began to wait for another
    thread as the signal came, or when the signal interrupted another thread. So a thread is woken by what C writes.
    """
    for number in (signal.SIGTERM, signal.SIGINT):  # these stay until the server takes over
        signal.signal(number, lambda *_: os._exit(0))
    read_end, write_end = socket.socketpair()
    write_end.setblocking(False)  # `set_wakeup_fd` asks for it
    signal.set_wakeup_fd(write_end.fileno())
    watcher = threading.Thread(target=_exit_when_woken, args=[read_end], name="signals", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(-1)
        write_end.close()
        watcher.join()
        read_end.close()


def _exit_when_woken(read_end: socket.socket) -> None:
    if read_end.recv(1):
        os._exit(0)


if __name__ == "__main__":
    main()
