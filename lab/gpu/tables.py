"""The tables of the pages that only a machine with a GPU can measure, from what `lab.gpu.check` wrote beside this."""

import json
from pathlib import Path
from typing import Any

from lab.benchmarks.record import Record, Rows

BATCHES = (1, 8, 64, 256)
COLUMNS = ("answer", "replicas", "images/s", "p99, ms")
SAME_LOAD = 32  # connections of a replica


def gpu_tables() -> dict[str, Record]:
    """By name of their block. Of `served by a GPU` the head is that of several replicas."""
    return {
        "runs on a GPU": Record(_read("speed")["measured"], runs()),
        "served by a GPU": Record(_read("replicas")["measured"], served()),
    }


def runs() -> Rows:
    rows = _rows("speed", "runs")
    return [
        {
            "images": batch,
            **{
                f"{what}, {column}": next(r[column] for r in rows if (r["graph"], r["batch"]) == (graph, batch))
                for graph, what in (("classify", "labels"), ("explain", "labels and maps"))
                for column in ("images/s", "images/s with copies")
            },
        }
        for batch in BATCHES
    ]


def served() -> Rows:
    one = [{**row, "replicas": 1} for row in rates("served") if row["connections"] == SAME_LOAD]
    rows = sorted([*one, *rates("replicas")], key=lambda row: str(row["answer"]))
    return [{column: row[column] for column in COLUMNS} for row in rows]


def rates(section: str) -> Rows:
    """Of `served`, one replica, or `replicas`, several on one GPU."""
    return _rows(section, "rates")


def _rows(section: str, table: str) -> Rows:
    rows: Rows = _read(section)["tables"][table]
    return rows


def _read(section: str) -> Any:
    return json.loads(Path(__file__).with_name(f"{section}.json").read_text())
