"""The JSON of every benchmark and load test: what was measured, and on which state of the code."""

import json
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import onnxruntime
from pydantic import JsonValue

from app.machine import allowed_cores
from lab.benchmarks.processor import processor

ROOT = Path(__file__).parents[2]
CODE = (
    "app", "client", "export", "model", "lab/batch", "lab/benchmarks", "lab/load", "lab/real", "lab/study",
    "pyproject.toml", "constraints.txt",
)  # fmt: skip
RECORDED = ("batch", "benchmarks", "load", "real", "study")  # folders of lab/
GENERATED = (":!*.json", ":!*.md")  # what benchmarks write themselves, as git leaves it out
PACKAGES = ("openvino", "numpy", "pillow", "fastapi", "uvicorn", "torch")

Row = dict[str, str | float]
Rows = list[Row]
Head = Mapping[str, JsonValue]


class Record(NamedTuple):
    head: Head
    rows: Rows


def write_record(path: Path, rows: Rows, more: Head | None = None) -> None:
    """`more` is what else a reader has to know, such as the versions of other servers."""
    path.write_text(json.dumps({"measured": {**head(), **(more or {})}, "rows": rows}, indent=2) + "\n")


def read_record(path: Path) -> Record:
    record = json.loads(path.read_text())
    return Record(head=record["measured"], rows=record["rows"])


def record_paths() -> dict[str, Path]:
    """Of every record, by its name."""
    return {path.stem: path for part in RECORDED for path in sorted((ROOT / "lab" / part).glob("*.json"))}


def rows_of(name: str) -> Rows:
    return read_record(record_paths()[name]).rows


def number(cell: str | float) -> float:
    """The first number of a cell."""
    return float(str(cell).split()[0])


def head() -> dict[str, JsonValue]:
    """Commit and date, code that was changed since that commit, the processor and versions."""
    return {
        "commit": git("rev-parse", "HEAD") or "unknown",
        "uncommitted": [*uncommitted()],
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": processor(),
        "cores": allowed_cores(),
        "versions": {
            "python": platform.python_version(),
            "onnxruntime": onnxruntime.__version__,
            **{package: version(package) for package in PACKAGES},
        },
    }


def uncommitted() -> list[str]:
    """Files of code that are not as in the commit."""
    changed = git("status", "--porcelain", "--untracked-files=all", "--", *CODE, *GENERATED)
    return [line[3:] for line in changed.splitlines()]


def git(*arguments: str) -> str:
    """What git prints; empty where there is no git or no repository."""
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, cwd=ROOT, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.rstrip("\n") if done.returncode == 0 else ""
