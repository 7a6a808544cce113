"""`python -m app`: run the server with settings from flags and VIT_* variables."""

import os
import signal
import sys


def main(arguments: list[str]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):  # until the server takes over
        signal.signal(number, lambda *_: os._exit(0))
    from app import server  # takes half a second, in which a signal may come

    server.serve(*server.load(arguments))


if __name__ == "__main__":
    main(sys.argv[1:])
