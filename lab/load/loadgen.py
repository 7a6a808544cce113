"""`python -m lab.load.loadgen [SECONDS]`: the load generator of MLPerf Inference, scenarios Offline and Server.

It sends JPEGs of 500 x 334 to POST /classify of a real server with ViT-S/16 (random weights), labels alone. Offline
gives all images at once and counts images per second. Server lets them arrive at random times (Poisson), and is asked
for shares of that rate: a run is valid when 99 of 100 are answered within LATENCY_MS. MLPerf's own runs take ten
minutes. Needs the dependency group `loadgen`. The table goes to lab/load/README.md.
"""

import re
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import mlperf_loadgen as loadgen

from lab.benchmarks.__main__ import publish
from lab.benchmarks.random_model import random_bundle
from lab.benchmarks.record import Row, Rows
from tests.support.pictures import jpeg
from tests.support.server import HOST, PATIENT, running

VARIANT = "S/16"
IMAGES = 64  # that differ
CONNECTIONS = 64
LATENCY_MS = 500  # two cores take 40 ms for one image
FIRST_GUESS = 20.0  # images per second
MORE = 1.25  # than the guess, which has the first runs in it: Offline is invalid if it ends before its time
SHARES = (0.5, 0.7, 0.9)  # of the offline rate
SECONDS = 60.0
PATH = "/classify?attention=false"
SUMMARY = "mlperf_log_summary.txt"
FIGURES = {
    "Offline": {"images/s": "Samples per second"},
    "Server": {
        "images/s": "Completed samples per second",
        "p50, ms": "50.00 percentile latency (ns)",
        "p99, ms": "99.00 percentile latency (ns)",
    },
}


class Service:
    """What MLPerf calls a system under test: it sends each sample over one of many connections."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._local = threading.local()
        self._pool = ThreadPoolExecutor(CONNECTIONS)
        self.failed = 0

    def issue(self, samples: list[Any]) -> None:
        for sample in samples:
            self._pool.submit(self._ask, sample.id, sample.index)

    def flush(self) -> None:
        return

    def _ask(self, id: int, index: int) -> None:
        if not hasattr(self._local, "connection"):
            self._local.connection = HTTPConnection(HOST, self._port, timeout=120)
        self._local.connection.request("POST", PATH, jpeg(index), {"Content-Type": "image/jpeg"})
        answer = self._local.connection.getresponse()
        answer.read()
        self.failed += answer.status != 200
        loadgen.QuerySamplesComplete([loadgen.QuerySampleResponse(id, 0, 0)])


def measure(seconds: float) -> Rows:
    for index in range(IMAGES):
        jpeg(index)  # drawn before the clock runs
    with (
        tempfile.TemporaryDirectory() as temporary,
        running(random_bundle(Path(temporary), VARIANT), **PATIENT) as server,
    ):
        guess = float(run(server.port, "Offline", expected=FIRST_GUESS, seconds=seconds / 4)["images/s"])
        rows = [run(server.port, "Offline", expected=MORE * guess, seconds=seconds)]
        rate = float(rows[0]["images/s"])
        return rows + [run(server.port, "Server", expected=share * rate, seconds=seconds) for share in SHARES]


def run(port: int, scenario: str, *, expected: float, seconds: float) -> Row:
    """`expected` is the rate in images per second: of Server the one that is asked for, of Offline a guess."""
    settings, logs, service = loadgen.TestSettings(), loadgen.LogSettings(), Service(port)
    settings.scenario = getattr(loadgen.TestScenario, scenario)
    settings.mode = loadgen.TestMode.PerformanceOnly
    settings.min_duration_ms = settings.max_duration_ms = round(1000 * seconds)
    settings.min_query_count = 1
    settings.offline_expected_qps = settings.server_target_qps = expected
    settings.server_target_latency_ns = LATENCY_MS * 10**6
    system = loadgen.ConstructSUT(service.issue, service.flush)
    library = loadgen.ConstructQSL(IMAGES, IMAGES, lambda _: None, lambda _: None)
    with tempfile.TemporaryDirectory() as folder:
        logs.log_output.outdir = folder
        logs.log_output.copy_summary_to_stdout = False
        loadgen.StartTestWithLogSettings(system, library, settings, logs)
        summary = (Path(folder) / SUMMARY).read_text()
    loadgen.DestroyQSL(library)
    loadgen.DestroySUT(system)
    if service.failed:
        raise RuntimeError(f"{service.failed} requests were not answered")
    row: Row = {
        **dict.fromkeys(("scenario", "asked, images/s", "images/s", "p50, ms", "p99, ms"), ""),
        "scenario": scenario,
        "MLPerf says": said(summary, "Result is").lower(),
    }
    if scenario == "Server":
        row["asked, images/s"] = round(expected, 1)
    for name, label in FIGURES[scenario].items():
        number = float(said(summary, label))
        row[name] = round(number / 1e6 if "(ns)" in label else number, 1)
    return row


def said(summary: str, label: str) -> str:
    """What stands behind a label."""
    found = re.search(rf"^{re.escape(label)}\s*: (\S+)", summary, re.MULTILINE)
    assert found, summary
    return found[1]


if __name__ == "__main__":
    publish("loadgen", measure(float(sys.argv[1]) if sys.argv[1:] else SECONDS))
