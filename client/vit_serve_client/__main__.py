"""The command `vit-serve-client`, or `python -m vit_serve_client`."""

import os
import signal
import sys
from typing import NoReturn

PROGRAM = "vit-serve-client"


def run(arguments: list[str] | None = None, *, program: str = PROGRAM) -> NoReturn:
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # and not ignored, as in the background of a script
        signal.signal(signal.SIGINT, _end)
    from vit_serve_client.command import INTERRUPTED, main

    signal.signal(signal.SIGINT, usual)
    try:
        status = main(sys.argv[1:] if arguments is None else arguments, program=program)
    except KeyboardInterrupt:  # before it has begun
        _end()
    if status == INTERRUPTED:
        os._exit(status)  # Python would wait for the answers to requests in progress
    sys.exit(status)


def _end(*_: object) -> NoReturn:
    """At once: an exception would come out of whatever is being imported, or pass for a package that is missing."""
    os.write(sys.stderr.fileno(), b"interrupted: no image was sent\n")
    os._exit(130)


if __name__ == "__main__":
    run()
