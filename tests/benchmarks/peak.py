"""The most memory that a process has had. Imports nothing, so that what is measured is not this."""

from pathlib import Path
from typing import Literal


def peak_mib(process: int | Literal["self"]) -> float:
    """Resident, by the number of the process."""
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))
