"""Mixed traffic: good images of several sizes, requests for their maps, bad input, and clients that leave early."""

import asyncio
import math
import random
import time
from collections import Counter
from io import BytesIO

import httpx
from PIL import Image

from lab.benchmarks.load import HOST
from tests.catalogue.case import encode
from tests.support.pictures import classify_jpeg, jpeg

CLIENTS = 4
TIMEOUT_S = 60
PAUSE_S = 0.05  # between a client's requests, on average: the service is busy but not overloaded
SIZES = ((1, 1), (64, 64), (640, 480), (1920, 1080), (4000, 3000))
DRAWINGS = ("", "?method=rollout", "?method=evidence&overlay=false", "/wall", "/report", "?format=json")


class Mixture:
    """Clients that do all of it at random. Expected answers are counted in `counted` by status, others in `wrong`."""

    def __init__(self, port: int, *, clients: int = CLIENTS, pause_s: float = PAUSE_S) -> None:
        self._port = port
        self._clients = clients
        self._pause_s = pause_s
        self._random = random.Random(0)
        self._good = [jpeg(), *(image(size) for size in SIZES)]
        self._bad = bad_input(jpeg())
        self.counted: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.latencies: list[tuple[float, float]] = []  # (moment, seconds) of requests with the same image

    @property
    def requests(self) -> int:
        """How many have been sent and have their answer."""
        return self.counted.total() + self.wrong.total()

    async def run(self, until: float, *, requests: float = math.inf) -> None:
        """Until a moment of time.monotonic, or until so many requests have their answer."""
        async with httpx.AsyncClient(base_url=f"http://{HOST}:{self._port}", timeout=TIMEOUT_S) as client:

            async def one_client() -> None:
                while time.monotonic() < until and self.requests < requests:
                    act = self._random.choices((self._classify, self._break, self._leave), (6, 3, 1))[0]
                    try:
                        await act(client)
                    except httpx.TransportError as error:
                        self.wrong[type(error).__name__] += 1
                    if self._pause_s:
                        await asyncio.sleep(self._random.expovariate(1 / self._pause_s))

            await asyncio.gather(*(one_client() for _ in range(self._clients)))

    async def _classify(self, client: httpx.AsyncClient) -> None:
        body = self._random.choices(self._good, (10, 5, 5, 5, 2, 1))[0]
        start = time.monotonic()
        answer = await client.post("/classify", content=body)
        if body is self._good[0]:
            self.latencies.append((start, time.monotonic() - start))
        if self._count(answer, 200):
            path = answer.json()["results"][0]["attention"] + self._random.choice(DRAWINGS)
            self._count(await client.get(path), 200)

    async def _break(self, client: httpx.AsyncClient) -> None:
        body, status = self._random.choice(self._bad)
        self._count(await client.post("/classify", content=body), status)

    async def _leave(self, client: httpx.AsyncClient) -> None:
        """Send a request, or part of one, and reset the connection."""
        request = classify_jpeg()
        _, writer = await asyncio.open_connection(HOST, self._port)
        writer.write(request[: self._random.choice((20, len(request) // 2, len(request)))])
        await asyncio.sleep(self._random.choice((0, 0.005, 0.02)))
        writer.transport.abort()
        self.counted["left"] += 1

    def _count(self, answer: httpx.Response, status: int) -> bool:
        right = answer.status_code == status
        (self.counted if right else self.wrong)[str(answer.status_code)] += 1
        return right


def image(size: tuple[int, int]) -> bytes:
    return encode(Image.open(BytesIO(jpeg())).resize(size), "JPEG" if size[0] % 3 else "PNG")


def bad_input(good: bytes) -> list[tuple[bytes, int]]:
    """Bodies, and the status that each must get."""
    unusable = (b"", good[: len(good) // 2], good[:10], encode(Image.new("L", (1, 6000))))
    return [*((body, 422) for body in unusable), (b"hello", 415), (b"%PDF-1.4" + good, 415)]
