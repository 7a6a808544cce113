"""`python -m tests.load.bulk [IMAGES]`: what `python -m app.client` loses, in speed and in images.

The client classifies the images of a folder, as a process of its own. First in turn with a closed loop that sends the
same images on plain sockets: it shows how fast the server can be. Then the server is killed and started again KILLS
times meanwhile. Each image lies in a folder of its label, so an answer that went to another image shows. The table goes
to docs/api.md.
"""

import asyncio
import csv
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from tqdm import tqdm

from model.demo.__main__ import write_images
from tests.benchmarks.__main__ import publish
from tests.benchmarks.load import connected, exchange, post
from tests.benchmarks.record import Row, Rows
from tests.benchmarks.server import PATIENT, running
from tests.load.replicas import replicas

IMAGES = 10_000
ROUNDS = 2
KILLS = 3
CONNECTIONS = 16  # as many as the client has
GROUP = 8  # images that the client sends in one request
SLOWEST_PER_S = 20.0  # images; what takes longer is ended
POLLED_EVERY_S = 0.02
BOUNDARY = "-next-image-"
PATH = "/classify?top_k=1&attention=false"  # as the client asks


@dataclass(frozen=True, kw_only=True)
class Run:
    """What came of one run over all images."""

    rate: float  # images per second, from the first answer to the last
    first_s: float  # from the start of the process to the first answer
    lost: int
    twice: int
    right: float  # share of the images that got the label of their folder


def main() -> None:
    publish("bulk", measure(int(sys.argv[1]) if len(sys.argv) > 1 else IMAGES), Path(__file__).parent)


def measure(count: int) -> Rows:
    with TemporaryDirectory() as place:
        folder = Path(place, "images")
        write_images(folder, count)
        best, ours = alone(folder, Path(place))
        interrupted = killed(folder, Path(place))
    rows = [
        row("closed loop", "one server", best, best),
        row("python -m app.client", "one server", statistics.median(run.rate for run in ours), best, ours),
        row("python -m app.client", f"one server, killed {KILLS} times", interrupted.rate, best, [interrupted]),
    ]
    return [{"images": count, **cells} for cells in rows]


def row(asked_by: str, server: str, rate: float, best: float, runs: Sequence[Run] = ()) -> Row:
    return {
        "asked by": asked_by,
        "of": server,
        "images/s": round(rate, 1),
        "relative": round(rate / best, 2),
        "s until the first answer": round(statistics.median(run.first_s for run in runs), 1) if runs else "",
        "lost": sum(run.lost for run in runs) if runs else "",
        "twice": sum(run.twice for run in runs) if runs else "",
        "right label": f"{100 * min(run.right for run in runs):.1f} %" if runs else "",
    }


def alone(folder: Path, place: Path) -> tuple[float, list[Run]]:
    """The median rate of the closed loop, and the client's runs, with one server."""
    sent, count = requests(folder), len(images(folder))
    seconds: list[float] = []
    ours: list[Run] = []
    with running(**PATIENT) as server:
        for number in tqdm(range(ROUNDS), desc="rounds"):
            seconds.append(asyncio.run(closed_loop(server.port, sent, seconds=count / SLOWEST_PER_S)))
            ours.append(named(server.url, folder, place / f"{number}.csv"))
    return count / statistics.median(seconds), ours


def killed(folder: Path, place: Path) -> Run:
    """The server dies at its work, and is started again at once on the same port."""
    with replicas(1, **PATIENT) as (server,):

        def restart() -> None:
            server.kill()
            server.revive()

        return named(f"http://127.0.0.1:{server.port}", folder, place / "killed.csv", interrupt=restart)


def images(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.png"))


def requests(folder: Path) -> list[bytes]:
    """All images, as many in each form as the client sends."""
    contents = [image.read_bytes() for image in images(folder)]
    form = f"multipart/form-data; boundary={BOUNDARY}"
    return [post(PATH, parts(contents[i : i + GROUP]), form) for i in range(0, len(contents), GROUP)]


def parts(contents: list[bytes]) -> bytes:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="image"; filename="0"\r\n\r\n'.encode()
    return b"".join(head + content + b"\r\n" for content in contents) + f"--{BOUNDARY}--\r\n".encode()


async def closed_loop(port: int, requests: list[bytes], *, seconds: float) -> float:
    """Seconds until all requests are answered. Raises TimeoutError after `seconds`, RefusedError unless all are 200."""
    waiting = iter(requests)

    async def converse() -> None:
        async with connected(port) as connection:
            for request in waiting:  # shared: each is sent once
                await exchange(connection, request)

    start = time.perf_counter()
    async with asyncio.timeout(seconds), asyncio.TaskGroup() as tasks:
        for _ in range(CONNECTIONS):
            tasks.create_task(converse())
    return time.perf_counter() - start


def named(server: str, folder: Path, out: Path, *, interrupt: Callable[[], object] | None = None) -> Run:
    """The images of `folder`, classified by the client into `out`. `interrupt` is called KILLS times meanwhile.

    Raises RuntimeError unless the client classifies all of them.
    """
    count = len(images(folder))
    log = out.with_suffix(".log")
    start = time.perf_counter()
    with log.open("wb") as errors, tqdm(total=count, desc=out.stem, unit="image") as bar:
        process = subprocess.Popen(
            [sys.executable, "-m", "app.client", server, folder, "--out", out, "--patience", "120"], stderr=errors
        )
        try:
            growth = watch(process, out, count, bar.update, interrupt, until=start + 600 + count / SLOWEST_PER_S)
        finally:
            process.kill()
            process.wait()
    if process.returncode:
        raise RuntimeError(f"the client ended with {process.returncode}: {log.read_text()}")
    (first_at, first), (last_at, last) = growth[0], growth[-1]
    answers = read(out)
    asked = {str(image): image.parent.name for image in images(folder)}
    return Run(
        rate=(last - first) / (last_at - first_at),
        first_s=first_at - start,
        lost=len(asked.keys() - answers.keys()),
        twice=sum(len(labels) - 1 for labels in answers.values()),
        right=sum(answers.get(image) == [label] for image, label in asked.items()) / count,
    )


def watch(
    process: subprocess.Popen[bytes],
    out: Path,
    count: int,
    advance: Callable[[int], object],
    interrupt: Callable[[], object] | None,
    *,
    until: float,
) -> list[tuple[float, int]]:
    """When the output grew, and to how many images. Raises TimeoutError if the process still runs at `until`."""
    left = KILLS if interrupt else 0
    growth: list[tuple[float, int]] = []
    done = 0
    with ExitStack() as stack:
        written: IO[bytes] | None = None
        while time.perf_counter() < until:
            ended = process.poll() is not None
            if written is None and out.exists() and out.stat().st_size:
                written = stack.enter_context(out.open("rb"))
                written.readline()  # its header
            if written and (new := written.read().count(b"\n")):
                done += new
                advance(new)
                growth.append((time.perf_counter(), done))
            if interrupt and left and done * (KILLS + 1) >= count * (KILLS + 1 - left):
                interrupt()
                left -= 1
            if ended:
                return growth
            time.sleep(POLLED_EVERY_S)
    raise TimeoutError(f"{done} of {count} images are named")


def read(out: Path) -> dict[str, list[str]]:
    """The labels that each image got, from the file of the client. Images that could not be used are not there."""
    labels: dict[str, list[str]] = {}
    with out.open(newline="") as file:
        for line in csv.DictReader(file):
            if not line["error"]:
                labels.setdefault(line["image"], []).append(line["label"])
    return labels


if __name__ == "__main__":
    main()
