import asyncio
import os
import re
import time
from pathlib import Path

import pytest

from app.telemetry.metrics import LOOP_INTERVAL_S, Metrics, watch_event_loop


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_an_unknown_method_makes_no_new_series(metrics):
    for word in ("FOO", "BAR"):
        metrics.request_ended(method=word, route="/classify", status=405, seconds=0.02, problem=None, key=None)
    assert value(metrics, "vit_requests_total", method="OTHER", route="/classify", status="405") == 2


def test_labels_are_counted_from_the_start_and_the_first_fifty_under_their_names(metrics):
    metrics.expect(routes=(), labels=("crane", "star", "crane"), keys=())
    assert value(metrics, "vit_top_labels_total", label="star") == 0
    for index in (0, 2):
        metrics.answered(index, 0.97)
    assert value(metrics, "vit_top_labels_total", label="crane") == 2
    assert value(metrics, "vit_top_score_bucket", le="0.95") == 0
    assert value(metrics, "vit_top_score_bucket", le="0.99") == 2

    many = Metrics()
    many.expect(routes=(), labels=[f"label {index}" for index in range(1000)], keys=())
    for index in (999, 50, 49):
        many.answered(index, 0.5)
    (found,) = (family for family in many.registry.collect() if family.name == "vit_top_labels")
    counts = {s.labels["label"]: s.value for s in found.samples if s.name.endswith("_total")}
    assert len(counts) == 51
    assert (counts["other"], counts["label 49"], counts["label 0"]) == (2, 1, 0)


def test_processor_time_includes_that_of_other_processes_once_and_when_they_have_ended(metrics):
    for others in ((os.getpid(),), (os.getpid(),), ()):
        metrics.cpu.others = lambda others=others: others
        of_others = value(metrics, "vit_cpu_seconds_total") - time.process_time()
        assert of_others == pytest.approx(time.process_time(), abs=0.2)


def test_every_metric_is_documented_and_every_documented_metric_exists(metrics):
    documented = re.findall(r"^\| `(vit_\w+)`", Path("docs/operations.md").read_text(), re.MULTILINE)
    exposed = {
        family.name + {"counter": "_total", "info": "_info"}.get(family.type, "")
        for family in metrics.registry.collect()
    }
    assert sorted(documented) == sorted(name for name in exposed if name.startswith("vit_"))
    assert "process_resident_memory_bytes" in exposed


def test_a_blocked_loop_is_noticed():
    async def scenario() -> float:
        seen: asyncio.Queue[float] = asyncio.Queue()
        watching = asyncio.create_task(watch_event_loop(seen.put_nowait))
        await asyncio.sleep(0)
        time.sleep(2 * LOOP_INTERVAL_S)  # blocks, as nothing should
        lag = await seen.get()
        watching.cancel()
        return lag

    assert asyncio.run(scenario()) >= 0.9 * LOOP_INTERVAL_S
