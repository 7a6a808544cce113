"""`python -m tests.support.stalled_start`: the server, blocked for ever while it loads its model."""

import threading

import app.backend
from app.__main__ import main


def stall(**_):
    print("loading", flush=True)  # noqa: T201
    threading.Event().wait()


if __name__ == "__main__":
    app.backend.open_model = stall
    main([])
