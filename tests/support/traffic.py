"""A light, steady load in the background of a test."""

import asyncio
import math
import threading
import time
from collections import Counter
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile

import httpx

from tests.support.arrivals import arrivals

PATIENCE = 60.0


@dataclass
class Traffic:
    """The outcome of the requests so far."""

    seconds: list[float] = field(default_factory=list)  # from the moment a request was due to its answer
    failures: list[str] = field(default_factory=list)
    waiting: set[float] = field(default_factory=set)  # when the requests without an answer were due
    answers: Counter[str] = field(default_factory=Counter)  # by the name of the model

    @property
    def longest_wait(self) -> float:
        return time.monotonic() - min(self.waiting.copy(), default=time.monotonic())


@contextmanager
def steady(
    port: int, body: bytes, rate: float, path: str = "/classify", models: Container[str] = ("shapes",)
) -> Iterator[Traffic]:
    """POST `body`, `rate` times a second at random moments (Poisson, open loop), until the block is left and every
    request is answered or has failed. Anything but a 200 with a prediction of one of the models counts as failed.
    """
    traffic = Traffic()
    stop = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_send(port, body, rate, path, models, traffic, stop)))
    thread.start()
    try:
        yield traffic
    finally:
        stop.set()
        thread.join()


async def _send(
    port: int, body: bytes, rate: float, path: str, models: Container[str], traffic: Traffic, stop: threading.Event
) -> None:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client:

        async def one(due: float) -> None:
            traffic.waiting.add(due)
            try:
                response = await client.post(path, content=body)
                answer = response.json() if response.status_code == 200 else {}
                if answer and answer["results"][0]["predictions"] and answer["model"]["name"] in models:
                    traffic.seconds.append(time.monotonic() - due)
                    traffic.answers[answer["model"]["name"]] += 1
                else:
                    traffic.failures.append(f"{response.status_code} {response.text[:200]}")
            except httpx.TransportError as error:
                traffic.failures.append(repr(error))
            finally:
                traffic.waiting.discard(due)

        start = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for moment in takewhile(lambda _: not stop.is_set(), arrivals(math.inf, rate)):
                await asyncio.sleep(start + moment - time.monotonic())
                tasks.create_task(one(start + moment))
