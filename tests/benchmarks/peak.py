"""The memory of a process, and its peak. Imports next to nothing, so that it adds nothing to the measurement."""

from pathlib import Path
from typing import Literal


def peak_mib(process: int | Literal["self"]) -> float:
    return _mib(process, "VmHWM")


def resident_mib(process: int | Literal["self"]) -> float:
    return _mib(process, "VmRSS")


def _mib(process: int | Literal["self"], name: str) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith(name))
