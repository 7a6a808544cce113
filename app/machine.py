"""What the machine allows this process: cores, memory, open files and thread priorities."""

import os
import resource
import sys
from pathlib import Path

# When threads compete for the cores, the event loop goes first, then the model, then image processing.
MODEL_NICENESS = 5
IMAGES_NICENESS = 15  # the model's threads wait for each other after every operator


def yield_by(niceness: int) -> None:
    """Lower the priority of this thread and of those that it starts. Does nothing where only processes have one."""
    if sys.platform == "linux":
        os.nice(niceness)


def allowed_cores() -> int:
    """Processors this process may use: the smaller of its affinity and its control group's quota (cgroup v2)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = Path("/sys/fs/cgroup/cpu.max")
    if quota.is_file():
        allowed, period = quota.read_text().split()
        if allowed != "max":
            cores = min(cores, max(1, int(allowed) // int(period)))
    return cores


def allowed_memory() -> int:
    """Bytes this process may use: the smaller of the machine's memory and its control group's limit (cgroup v2)."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file() and (allowed := limit.read_text().strip()) != "max":
        return min(machine, int(allowed))
    return machine


def allow_open_files(wanted: int) -> None:
    """Raise the limit of open files to `wanted`, or as far as the system allows.

    The usual default of 1024 is often less than the number of connections that the settings allow.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
