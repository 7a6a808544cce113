"""`python -m export`: export/command.py, after what takes seconds to import."""

import sys

from export.progress import working

if __name__ == "__main__":
    with working("starting"):
        from export.command import main
    main(sys.argv[1:])
