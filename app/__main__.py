"""`python -m app`: run the server with settings from VIT_* variables. Signals end the process until the server runs.

This file imports nothing that takes long. Until `exit_at_signals` is entered, SIGINT ends the process with a traceback,
and SIGTERM is lost on process 1 of a container: the kernel drops a signal for process 1 that has no handler.
"""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def main() -> None:
    with exit_at_signals():
        from app import server  # takes half a second, in which a signal may come

        loaded = server.load()
    server.serve(*loaded)


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
