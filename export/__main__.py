"""`python -m export`: export/command.py."""

import gc
import sys


def main(arguments: list[str]) -> None:
    gc.set_threshold(100_000)  # PyTorch's exporter makes millions of objects that live
    try:
        from export.command import main

        main(arguments)
    except KeyboardInterrupt:
        print("interrupted: nothing was written", file=sys.stderr)  # noqa: T201
        sys.exit(130)  # as shells have it: 128 and the number of SIGINT
    finally:
        gc.freeze()  # or the interpreter would look at all of them again when it ends, for 1.5 seconds


if __name__ == "__main__":
    main(sys.argv[1:])
