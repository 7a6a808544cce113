"""`python -m vit_serve_client`."""

import os
import signal
import sys


def end(*_: object) -> None:
    """At once: an exception would come out of whatever is being imported, or pass for a package that is missing."""
    os.write(sys.stderr.fileno(), b"interrupted: no image was sent\n")
    os._exit(130)


if __name__ == "__main__":
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # and not ignored, as in the background of a script
        signal.signal(signal.SIGINT, end)
    try:
        from vit_serve_client.command import INTERRUPTED, main
    except ModuleNotFoundError as missing:
        sys.exit(
            f"not started: {missing.name} is missing: install what the client needs with `make setup`, or with "
            "`pip install --group client`"
        )
    finally:
        signal.signal(signal.SIGINT, usual)
    try:
        status = main(sys.argv[1:])
    except KeyboardInterrupt:  # before it has begun
        end()
    if status == INTERRUPTED:
        os._exit(status)  # Python would wait for the answers to requests in work
    sys.exit(status)
