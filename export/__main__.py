"""`python -m export`: export/command.py, after what takes seconds to import."""

import gc
import sys

from export.progress import working

if __name__ == "__main__":
    gc.set_threshold(100_000)  # PyTorch's exporter makes millions of objects that live
    with working("starting", leave=False):
        from export.command import main
    try:
        main(sys.argv[1:])
    finally:
        gc.freeze()  # or the interpreter would look at all of them again when it ends, for 1.5 seconds
