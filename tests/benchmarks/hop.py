"""What decoding in another process costs: the same image, by the same function, through four kinds of pool.

The event loop is the one that the service uses. CPU time is that of this process and all its descendants.
"""

import asyncio
import multiprocessing
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pebble
import uvloop
from tqdm import tqdm

from app.images.messages import unpack_answer
from app.images.pool import WorkerPool
from app.images.prepared import Prepared
from app.images.preparer import Preparer
from app.images.upload import Upload
from app.machine import IMAGES_NICENESS, yield_by
from tests.benchmarks.intake import SPEC, preparer
from tests.benchmarks.pictures import jpeg
from tests.benchmarks.server import family

WORKERS = 2
WARM_UP = 20
IMAGES = 50  # per round
ROUNDS = 16
TIMEOUT_S = 20.0
FORKSERVER = multiprocessing.get_context("forkserver")

Ask = Callable[[], Awaitable[Prepared]]


def prepare(work: Preparer, data: bytes) -> Prepared:
    return work.prepare(data, thumbnail=True)


@contextmanager
def threads() -> Iterator[Ask]:
    with ThreadPoolExecutor(WORKERS, initializer=yield_by, initargs=(IMAGES_NICENESS,)) as pool:
        work = partial(prepare, preparer(), jpeg())
        yield lambda: asyncio.get_running_loop().run_in_executor(pool, work)


@contextmanager
def ours() -> Iterator[Ask]:
    pool = WorkerPool(
        work=preparer(),
        workers=WORKERS,
        max_small=WORKERS,
        max_pixels_in_work=1,
        max_answer_bytes=2**30,
        memory_bytes=2**30,
        timeout_s=TIMEOUT_S,
    )
    pool.start()

    async def ask() -> Prepared:
        return unpack_answer(await pool.run(Upload(jpeg()), thumbnail=True), shape=SPEC.size)

    try:
        yield ask
    finally:
        pool.stop()


@contextmanager
def futures() -> Iterator[Ask]:
    with ProcessPoolExecutor(WORKERS, FORKSERVER, initializer=os.nice, initargs=(IMAGES_NICENESS,)) as pool:
        work = preparer()
        yield lambda: asyncio.get_running_loop().run_in_executor(pool, prepare, work, jpeg())


@contextmanager
def pebbles() -> Iterator[Ask]:
    with pebble.ProcessPool(WORKERS, 0, os.nice, (IMAGES_NICENESS,), FORKSERVER) as pool:
        work = preparer()
        yield lambda: asyncio.wrap_future(pool.schedule(prepare, (work, jpeg()), timeout=TIMEOUT_S))
        pool.stop()


POOLS = {
    "threads, which cannot be killed": threads,
    "this project's processes": ours,
    "concurrent.futures, which kills no worker": futures,
    "pebble": pebbles,
}


def measure() -> list[dict[str, str | float]]:
    milliseconds: dict[str, list[float]] = {name: [] for name in POOLS}
    processor: dict[str, list[float]] = {name: [] for name in POOLS}
    together: dict[str, list[float]] = {name: [] for name in POOLS}
    for _ in tqdm(range(ROUNDS)):
        for name, pool in POOLS.items():
            with pool() as ask:
                alone, busy, rate = uvloop.run(one_round(ask))
            milliseconds[name] += alone
            processor[name].append(busy)
            together[name].append(rate)
    least = min(processor["threads, which cannot be killed"])
    return [
        {
            "pool": name,
            "one at a time, p50 ms": round(statistics.median(milliseconds[name]), 2),
            "p99 ms": round(statistics.quantiles(milliseconds[name], n=100)[98], 2),
            "CPU ms per image, lowest of the rounds": round(min(processor[name]), 2),
            "more than threads, CPU ms": round(min(processor[name]) - least, 2),
            "16 at a time, images/s": round(statistics.median(together[name])),
        }
        for name in POOLS
    ]


async def one_round(ask: Ask) -> tuple[list[float], float, float]:
    for _ in range(WARM_UP):
        await ask()
    alone, before = [], cpu_seconds()
    for _ in range(IMAGES):
        start = time.perf_counter()
        await ask()
        alone.append(1000 * (time.perf_counter() - start))
    busy = 1000 * (cpu_seconds() - before) / IMAGES
    start = time.perf_counter()
    await asyncio.gather(*(several(ask) for _ in range(16)))
    return alone, busy, 16 * (IMAGES // 16) / (time.perf_counter() - start)


def cpu_seconds() -> float:
    """Of this process and its descendants, to the nanosecond: by the clock of each, see clock_getcpuclockid(3)."""
    return sum(time.clock_gettime((~pid << 3) | 2) for pid in family(os.getpid()))


async def several(ask: Ask) -> None:
    for _ in range(IMAGES // 16):
        await ask()
