"""What the machine allows this process: cores, memory, open files and thread priorities."""

import os
import resource
import sys
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")  # of this process, as a container sees it

# When threads compete for the cores, the event loop goes first, then the model, then image processing.
MODEL_NICENESS = 5
IMAGES_NICENESS = 15  # the model's threads wait for each other after every operator


def yield_by(niceness: int) -> None:
    """Lower the priority of this thread and of those that it starts. Does nothing where only processes have one."""
    if sys.platform == "linux":
        os.nice(niceness)


def processors() -> int:
    """Those that this process may run on, as its affinity says."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def allowed_cores() -> int:
    """Processors this process may use: the smaller of its affinity and its control group's quota (cgroup v2 or v1)."""
    cores = processors()
    quota, period = _first_of("cpu.max").split() or (
        _first_of("cpu/cpu.cfs_quota_us") or "max",
        _first_of("cpu/cpu.cfs_period_us"),
    )
    return cores if quota in ("max", "-1") else min(cores, max(1, int(quota) // int(period)))


def allowed_memory() -> int:
    """Bytes this process may use: the smaller of the machine's memory and its control group's limit (cgroup v2 or v1).

    Where there is no limit, version 1 says a number larger than any memory.
    """
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _first_of("memory.max", "memory/memory.limit_in_bytes")
    return machine if limit in ("", "max") else min(machine, int(limit))


def resident_memory() -> int:
    """Bytes of this process that lie in memory and in no file, so that only ending it frees them; 0 where no system
    call tells. Linux counts them against the limit of the control group.
    """
    try:
        _, resident, shared, *_ = Path("/proc/self/statm").read_text().split()
    except OSError:
        return 0
    return os.sysconf("SC_PAGE_SIZE") * (int(resident) - int(shared))


def _first_of(*files: str) -> str:
    """The text of the first of these files of the control group that is there, else an empty one."""
    found = (CGROUP / file for file in files if (CGROUP / file).is_file())
    return next((file.read_text().strip() for file in found), "")


def allow_open_files(wanted: int) -> None:
    """Raise the limit of open files to `wanted`, or as far as the system allows.

    The usual default of 1024 is often less than the number of connections that the settings allow.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
