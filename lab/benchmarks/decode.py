"""What resize.c and the memory of the processes that decode save: Pillow's way and the service's, in turns.

Each way is a process that decodes, as the service starts it. Pillow's has neither the library nor the settings of
memory that are for it and for large images. Of the calls the least counts: neighbours only ever add to CPU time.
"""

import json
import socket
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest.mock import patch

from app.images.fork_server import ANSWER, REQUEST
from app.images.worker import SET, ForkServer, Worker
from lab.benchmarks.record import Row, Rows
from lab.benchmarks.rounds import in_turn
from lab.benchmarks.stages import LIMITS, Stages, decoded
from tests.catalogue.case import encode
from tests.support.pictures import jpeg

SIZES = ((500, 334), (1280, 853), (4000, 3000))
FILTERS = ("bicubic", "bilinear")
OF_MEMORY = ("GLIBC_TUNABLES", "PILLOW_BLOCK_SIZE")
ROUNDS = 12

Times = dict[str, Any]  # what `Stages` answers


def measure() -> Rows:
    pictures = [encode(decoded(jpeg()).resize(size), "JPEG", quality=90) for size in SIZES]
    with ExitStack() as stack:
        ways = {(name, library): started(stack, name, library=library) for name in FILTERS for library in (False, True)}
        return [row(data, name, ways) for data in pictures for name in FILTERS]


def started(stack: ExitStack, interpolation: str, *, library: bool) -> Callable[[bytes], Times]:
    """Asks a process of its own, which lives as long as the stack."""
    with patch.dict(SET):
        for name in () if library else OF_MEMORY:
            del SET[name]
        fork_server = ForkServer(work=Stages(library, interpolation), max_pixels=LIMITS.max_pixels)
    stack.callback(fork_server.stop)
    worker = Worker()
    fork_server.renew(worker)
    assert worker.connection
    worker.connection.setblocking(True)
    stack.callback(worker.close)
    return partial(ask, worker.connection)


def ask(connection: socket.socket, data: bytes) -> Times:
    connection.sendall(REQUEST.pack(len(data), LIMITS.max_pixels, False) + data)
    (size,) = ANSWER.unpack(connection.recv(ANSWER.size, socket.MSG_WAITALL))
    times: Times = json.loads(connection.recv(size, socket.MSG_WAITALL))
    return times


def row(data: bytes, interpolation: str, ways: dict[tuple[str, bool], Callable[[bytes], Times]]) -> Row:
    asked = {library: partial(ways[interpolation, library], data) for library in (False, True)}
    times = in_turn(asked, ROUNDS)
    size = decoded(data).size

    def least(library: bool, stage: str) -> float:
        return float(min(of_round[stage] for of_round in times[library]))

    def both(stage: str) -> str:
        return f"{least(False, stage):.2f} / {least(True, stage):.2f}"

    def ratio(stage: str) -> float:
        return round(least(False, stage) / least(True, stage), 1)

    pixels = {of_round["pixels"] for of_way in times.values() for of_round in of_way}
    return {
        "JPEG": f"{size[0]}×{size[1]}",
        "filter": interpolation,
        "resize and crop: Pillow / resize.c, ms": both("resize"),
        "times as fast": ratio("resize"),
        "decode, resize and crop, ms": both("labels"),
        "times as fast, with decoding": ratio("labels"),
        "thumbnail for maps, ms": both("thumbnail"),
        "same pixels": "yes" if len(pixels) == 1 else "no",
    }
