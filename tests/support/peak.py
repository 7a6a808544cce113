"""The peak of a process's memory. Imports next to nothing, so that it adds nothing to the measurement."""

from pathlib import Path
from typing import Literal


def peak_mib(process: int | Literal["self"]) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def reset_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # proc(5): the peak becomes the current resident memory
