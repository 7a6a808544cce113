"""Processor time of the event loop for an image: what bounds one process, however many cores decode and run the model.

It is that of the server's main thread, which does nothing else, with the log as it is by default. The requests take
turns, at 4 connections that stay open; the model is the demo's.
"""

import statistics
from functools import partial

from lab.benchmarks.protocols import requests
from lab.benchmarks.record import Rows
from lab.benchmarks.rounds import in_turn, quartiles
from lab.benchmarks.stages import decoded
from lab.benchmarks.under_load import under_load
from tests.catalogue.case import encode
from tests.support.connection import JPEG, post
from tests.support.pictures import classify_jpeg, jpeg
from tests.support.server import PATIENT, Process, running

CONNECTIONS = 4
ROUNDS = 5
SECONDS = 3.0
SMALL = (224, 224)


def measure() -> Rows:
    small = encode(decoded(jpeg()).resize(SMALL), "JPEG", quality=90)
    loads = {
        "labels of a JPEG of 224×224": post(small, JPEG, path="/classify?attention=false"),
        "default, the same": post(small, JPEG, path="/classify"),
        "labels of a JPEG of 500×334": classify_jpeg("?attention=false"),
        **{name: request for name, request in requests().items() if "/v2" in name or "Hugging" in name},
    }
    with running(log_level="info", **PATIENT) as server:
        found = in_turn({name: partial(load, server, request) for name, request in loads.items()}, ROUNDS)
    return [
        {
            "request, demo model": name,
            "event loop, CPU ms per image": quartiles([of_loop for of_loop, _ in rounds], 2),
            "whole server, CPU ms per image": round(statistics.median(of_all for _, of_all in rounds), 2),
            "images/s of one process at most": round(1000 / statistics.median(of_loop for of_loop, _ in rounds)),
        }
        for name, rounds in found.items()
    ]


def load(server: Process, request: bytes) -> tuple[float, float]:
    """CPU ms per image: of the event loop, and of all of the server."""
    before = server.main_thread_seconds()
    figures = under_load(server, request, SECONDS, connections=CONNECTIONS)
    of_loop = server.main_thread_seconds() - before
    return 1000 * of_loop / figures["images"], 1000 * figures["cpu_s"] / figures["images"]
