"""`python -m lab.batch PYTHON`: a folder of images through Ray Data and Daft, beside the service; writes batch.json.

PYTHON is that of an environment with both, as `make batch` makes it. Each row has to equal the service's answer in
every bit, and a worker of Ray that is killed must lose no image.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from app.batch import BatchClassifier
from app.settings import DEMO_BUNDLE
from lab.benchmarks.__main__ import publish
from lab.benchmarks.record import ROOT, Rows
from lab.benchmarks.under_load import under_load
from tests.support.pictures import classify_jpeg, jpeg
from tests.support.server import PATIENT, family, running

PROGRAMS = {"Ray Data": "lab.batch.with_ray", "Daft": "lab.batch.with_daft"}
FEW, MANY = 200, 1400  # images: the difference of both times leaves out the start
DIFFERENT = 40
SECONDS = 15.0
CONNECTIONS = 16
WORKER = b"ray::MapWorker"
PATIENCE_S = 600.0
READ = """
import json, sys
from pyarrow.parquet import read_table
print(json.dumps({row.pop("path").rsplit("/", 1)[1]: row for row in read_table(sys.argv[1]).to_pylist()}))
"""

Answers = dict[str, dict[str, Any]]  # label, score, embedding and error, by name of the file


def main(python: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few, many = (images(folder / str(count), count) for count in (FEW, MANY))
        answers, rate = service(few)
        rows: Rows = [
            {"way": "the service, labels", "images/s": rate},
            {"way": "BatchClassifier", "images/s": alone(many)},
        ]
        for way, program in PROGRAMS.items():
            seconds = []
            for source in (few, many):
                out = folder / f"{program}-{source.name}"
                start = time.perf_counter()
                run = started(python, program, source, out)
                assert run.wait(PATIENCE_S) == 0, f"{way} failed"
                seconds.append(time.perf_counter() - start)
                assert not different(answers, written(python, out)), f"{way} has other numbers than the service"
            rows.append({"way": way, "images/s": round((MANY - FEW) / (seconds[1] - seconds[0]))})
        assert len(after_a_kill(python, many, folder / "killed")) == MANY + 1, "images were lost"
    publish("batch", rows)


def images(folder: Path, count: int) -> Path:
    """So many images, and one that is cut short."""
    folder.mkdir()
    for place in range(count):
        (folder / f"{place:04}.jpg").write_bytes(jpeg(place % DIFFERENT))
    (folder / "broken.jpg").write_bytes(jpeg()[:5000])
    return folder


def service(folder: Path) -> tuple[Answers, float]:
    """What the service says of each image, and its images per second where labels alone are asked for."""
    answers: Answers = {}
    with running(DEMO_BUNDLE, **PATIENT) as server, httpx.Client(base_url=server.url) as client:
        for file in folder.iterdir():
            labels, vectors = (
                client.post(f"/{path}?attention=false", content=file.read_bytes()).json()
                for path in ("classify", "embed")
            )
            if "results" not in labels:
                answers[file.name] = {"label": None, "score": None, "embedding": None, "error": labels["detail"]}
                continue
            best = labels["results"][0]["predictions"][0]
            embedding = vectors["results"][0]["embedding"]
            answers[file.name] = {"label": best["label"], "score": best["score"], "embedding": embedding, "error": None}
        figures = under_load(server, classify_jpeg("?attention=false"), SECONDS, connections=CONNECTIONS)
    return answers, round(figures["images_per_s"])


def alone(folder: Path) -> float:
    """Images per second of one call, without other programs."""
    contents = [file.read_bytes() for file in folder.iterdir()]
    with BatchClassifier(DEMO_BUNDLE) as classify:
        start = time.perf_counter()
        classify(contents)
        return round(len(contents) / (time.perf_counter() - start))


def started(python: str, program: str, source: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [python, "-m", program, str(DEMO_BUNDLE), str(source), str(out)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def written(python: str, out: Path) -> Answers:
    done = subprocess.run([python, "-c", READ, str(out)], capture_output=True, check=True)
    found: Answers = json.loads(done.stdout)
    return found


def different(answers: Answers, found: Answers) -> Sequence[str]:
    """Names of the files whose rows are not the service's answers. `found` may repeat images under further names."""
    return [name for name, answer in answers.items() if found.get(name) != answer]


def after_a_kill(python: str, source: Path, out: Path) -> Answers:
    """What Ray Data writes where the process that classifies is killed in the middle."""
    run = started(python, PROGRAMS["Ray Data"], source, out)
    while not (workers := [pid for pid in family(run.pid) if WORKER in Path(f"/proc/{pid}/cmdline").read_bytes()]):
        assert run.poll() is None
        time.sleep(0.1)
    time.sleep(5)  # for it to start, and to be in the middle
    os.kill(workers[0], signal.SIGKILL)
    assert run.wait(PATIENCE_S) == 0
    return written(python, out)


if __name__ == "__main__":
    main(sys.argv[1])
