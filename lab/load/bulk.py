"""`python -m lab.load.bulk [IMAGES]`: what `vit-serve-client` loses, in speed and in images; for lab/load/README.md.

The client takes turns with a closed loop of the same images on plain sockets, which shows how fast the server can be.
Then the server is killed and started again KILLS times meanwhile. Each image lies in a folder of its label, so an
answer that went to another image shows.
"""

import asyncio
import csv
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tqdm import tqdm

from lab.benchmarks.__main__ import publish
from lab.benchmarks.load import closed_loop
from lab.benchmarks.record import Row, Rows
from model.demo.__main__ import write_images
from tests.support.connection import file_part, form
from tests.support.replicas import replicas
from tests.support.server import PATIENT, running

IMAGES = 10_000
ROUNDS = 2
KILLS = 3
CONNECTIONS = 16  # as many as the client has
GROUP = 8  # images that the client sends in one request
SLOWEST_PER_S = 20.0  # images; what takes longer is ended
POLLED_EVERY_S = 0.02
PATH = "/classify?top_k=1&attention=false"  # as the client asks


class Run(NamedTuple):
    rate: float  # images per second, from the first answer to the end
    first_s: float  # from the start of the process to the first answer
    lost: int
    twice: int
    right: float  # share of the images that got the label of their folder


def measure(count: int) -> Rows:
    with TemporaryDirectory() as place:
        folder = Path(place, "images")
        write_images(folder, count)
        best, ours = alone(folder, Path(place))
        interrupted = killed(folder, Path(place))
    closed: Row = {"asked by": "closed loop", "of": "one server", "images/s": round(best, 1), "relative": 1.0}
    rows = [
        closed | dict.fromkeys(("s until the first answer", "lost", "twice", "right label"), ""),
        row("one server", best, ours),
        row(f"one server, killed {KILLS} times", best, [interrupted]),
    ]
    return [{"images": count, **cells} for cells in rows]


def row(server: str, best: float, runs: list[Run]) -> Row:
    rates, seconds, lost, twice, right = zip(*runs, strict=True)
    rate = statistics.median(rates)
    return {
        "asked by": "vit-serve-client",
        "of": server,
        "images/s": round(rate, 1),
        "relative": round(rate / best, 2),
        "s until the first answer": round(statistics.median(seconds), 1),
        "lost": sum(lost),
        "twice": sum(twice),
        "right label": f"{100 * min(right):.1f} %",
    }


def alone(folder: Path, place: Path) -> tuple[float, list[Run]]:
    """The median rate of the closed loop, and the client's runs, with one server."""
    sent, count = requests(folder), len(images(folder))
    seconds: list[float] = []
    ours: list[Run] = []
    with running(**PATIENT) as server:
        for number in tqdm(range(ROUNDS), desc="rounds"):
            figures, _ = asyncio.run(closed_loop(server.port, sent, count / SLOWEST_PER_S, CONNECTIONS))
            if figures["images"] < len(sent):
                raise TimeoutError(f"{figures['images']} of {len(sent)} requests are answered")
            seconds.append(figures["seconds"])
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
    parts = [file_part(image.read_bytes()) for image in images(folder)]
    return [form(*parts[i : i + GROUP], path=PATH) for i in range(0, len(parts), GROUP)]


def named(server: str, folder: Path, out: Path, *, interrupt: Callable[[], object] | None = None) -> Run:
    """The images of `folder`, classified by the client into `out`. `interrupt` is called KILLS times meanwhile.

    Raises RuntimeError unless the client classifies all of them, TimeoutError if it is too slow.
    """
    asked = {str(image): image.parent.name for image in images(folder)}
    command = [sys.executable, "-m", "vit_serve_client", server, str(folder), "--out", str(out), "--patience", "120"]
    interrupts = [len(asked) * (i + 1) / (KILLS + 1) for i in range(KILLS)] if interrupt else []
    start = first_at = time.perf_counter()
    first = done = 0
    with out.with_suffix(".log").open("w") as log, subprocess.Popen(command, stderr=log, cwd="client") as process:
        try:
            while process.poll() is None:
                time.sleep(POLLED_EVERY_S)
                moment, done = time.perf_counter(), out.read_bytes().count(b"\n") - 1 if out.exists() else 0
                if moment > start + 600 + len(asked) / SLOWEST_PER_S:
                    raise TimeoutError(f"{done} of {len(asked)} images are named")
                if done > 0 and not first:
                    first_at, first = moment, done
                if interrupt and interrupts and done >= interrupts[0]:
                    interrupt()
                    del interrupts[0]
        finally:
            process.kill()
        if process.wait():
            raise RuntimeError(f"the client ended with {process.returncode}: {Path(log.name).read_text()}")
    answers = read(out)
    return Run(
        rate=(len(asked) - first) / (moment - first_at),
        first_s=first_at - start,
        lost=len(asked.keys() - answers.keys()),
        twice=sum(len(labels) - 1 for labels in answers.values()),
        right=sum(answers.get(image) == [label] for image, label in asked.items()) / len(asked),
    )


def read(out: Path) -> dict[str, list[str]]:
    """The labels that each image got, from the file of the client. Images that could not be used are not there."""
    labels: dict[str, list[str]] = {}
    with out.open(newline="") as file:
        for line in csv.DictReader(file):
            if not line["error"]:
                labels.setdefault(line["image"], []).append(line["label"])
    return labels


if __name__ == "__main__":
    publish("bulk", measure(int(sys.argv[1]) if sys.argv[1:] else IMAGES))
