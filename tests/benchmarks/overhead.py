"""What the service adds to a lone request: its time minus that of decoding and of the model at batch 1.

Requests are sent one after the other over one connection. Decoding, preprocessing and the model are timed in between,
in this process, with the service's own engine.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from tqdm import tqdm

from app.bundle import load_bundle
from app.images.decode import Limits
from app.images.preparer import Preparer
from app.inference.device import open_model
from app.inference.engine import Graph
from app.settings import DEMO_BUNDLE, Settings
from export.bundle import write_bundle
from tests.benchmarks.load import connected, exchange, post
from tests.benchmarks.pictures import jpeg
from tests.benchmarks.random_model import random_checkpoint
from tests.benchmarks.server import Server, running

VARIANT = "Ti/16"
WARM_UP = 20
REQUESTS = 50  # per round
ROUNDS = 8


def measure() -> list[dict[str, str | float]]:
    with tempfile.TemporaryDirectory() as temporary:
        tiny = Path(temporary) / "tiny"
        write_bundle(random_checkpoint(VARIANT), tiny, replace=False)
        return [
            row(f"{name}, {what}", bundle, explain=explain)
            for name, bundle in (("demo", DEMO_BUNDLE), (f"ViT-{VARIANT}", tiny))
            for what, explain in (("labels", False), ("labels and maps", True))
        ]


def row(name: str, bundle: Path, *, explain: bool) -> dict[str, str | float]:
    settings, loaded = Settings(), load_bundle(bundle)
    image = loaded.manifest.image
    engine = open_model(settings=Settings(device="cpu"), bundle=loaded).engine
    graph: Graph = "explain" if explain else "classify"
    run = partial(engine.run, graph, np.zeros((1, *image.size, 3), dtype=np.uint8))
    preparer = Preparer(
        limits=Limits(max_pixels=settings.max_image_pixels, max_aspect_ratio=settings.max_aspect_ratio),
        spec=image,
        thumbnail_px=settings.thumbnail_px,
    )
    request = post("/classify" if explain else "/classify?attention=false", jpeg(), "image/jpeg")
    whole: list[float] = []
    decoding: list[float] = []
    inference: list[float] = []
    decode = partial(preparer.prepare, jpeg(), thumbnail=explain, max_pixels=settings.max_image_pixels)
    with running(bundle) as server:
        milliseconds(server, request, WARM_UP)
        for _ in tqdm(range(ROUNDS), desc=name):
            whole += milliseconds(server, request, REQUESTS)
            decoding += [timed(decode) for _ in range(REQUESTS)]
            inference += [timed(run) for _ in range(REQUESTS)]
    p50, decoded, inferred = map(statistics.median, (whole, decoding, inference))
    return {
        "request": name,
        "p50, ms": round(p50, 2),
        "decode and preprocess, ms": round(decoded, 2),
        "model, batch 1, ms": round(inferred, 2),
        "overhead, ms": round(p50 - decoded - inferred, 2),
    }


def milliseconds(server: Server, request: bytes, count: int) -> list[float]:
    async def ask() -> list[float]:
        async with connected(server.port) as connection:
            found = []
            for _ in range(count):
                start = time.perf_counter()
                await exchange(connection, request)
                found.append(1000 * (time.perf_counter() - start))
            return found

    return asyncio.run(ask())


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)
