"""What the machine allows this process: cores, GPUs, memory, open files and thread priorities."""

import ctypes
import os
import re
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath

from app.errors import CannotStart

PROCESS = Path("/proc/self")
PROCESSOR = Path("/proc/cpuinfo")
LEAST = {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}  # x86-64-v2
_PR_SET_DUMPABLE = 4  # prctl(2)
CUDA_DRIVER = "libcuda.so.1"  # NVIDIA's
VERSION_2 = ""  # of control groups: all controllers are in one hierarchy without a name

# When threads compete for the cores, the event loop goes first, then the model, then image processing.
MODEL_NICENESS = 5
IMAGES_NICENESS = 15  # the model's threads wait for each other after every operator


def yield_by(niceness: int) -> None:
    """Lower the priority of this thread and of those that it starts. Does nothing where only processes have one, or
    where the system refuses it.
    """
    if sys.platform == "linux":
        with suppress(OSError):  # as under a filter of system calls without setpriority
            os.nice(niceness)


def hide_memory() -> None:
    """Keep other processes of this user from what this one has in memory and had in its environment: keys, and the
    store's password. A decoder that an image has taken over is such a process.
    """
    if sys.platform == "linux":
        _c_library().prctl(_PR_SET_DUMPABLE, 0)


def processors() -> int:
    """The processors that this process may run on, as its affinity says."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def instructions() -> set[str]:
    """What the processor has beyond those that each has, as Linux names it; empty where that is not told."""
    known = re.search(r"^(?:flags|Features)\s*: (.*)$", PROCESSOR.read_text(), re.M) if PROCESSOR.exists() else None
    return set(known[1].split()) if known else set()


def check_processor() -> None:
    """Raises CannotStart on an x86-64 without what NumPy and the engines use unasked: they would end the process."""
    if (known := instructions()) and "lm" in known and (missing := LEAST - known):
        lacks = ", ".join(sorted(missing))
        raise CannotStart(f"this processor lacks {lacks}: x86-64-v2 is needed, which a virtual machine may hide")


def allowed_cores() -> int:
    """Processors this process may use: its affinity, or less where a control group has a quota (cgroup v2 or v1)."""
    quotas = [text.split() for text in _limits(VERSION_2, "cpu.max")]
    quotas += map(list, zip(_limits("cpu", "cpu.cfs_quota_us"), _limits("cpu", "cpu.cfs_period_us"), strict=True))
    allowed = [int(quota) // int(period) for quota, period in quotas if quota not in ("max", "-1")]
    return max(1, min([processors(), *allowed]))


def count_gpus() -> int:
    """GPUs that this process may use (`CUDA_VISIBLE_DEVICES` hides others); 0 without a driver that works. ONNX Runtime
    has no call for it.
    """
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL(CUDA_DRIVER)
        failed = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    except (OSError, AttributeError):
        return 0
    return 0 if failed else count.value


def allowed_memory() -> int:
    """Bytes this process may use: the machine's memory, or less where a control group has a limit (cgroup v2 or v1).

    Where there is no limit, version 1 says a number larger than any memory.
    """
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [
        *_limits(VERSION_2, "memory.max"),
        *_limits(VERSION_2, "memory.high"),  # above it the kernel slows the process down
        *_limits("memory", "memory.limit_in_bytes"),
    ]
    return min([machine, *(int(limit) for limit in limits if limit != "max")])


def cpu_seconds(process: int) -> float:
    """Processor time of a process, by its number above 0; 0 where there is none, or no system call tells."""
    try:
        return time.clock_gettime((~process << 3) | 2)  # the clock of clock_getcpuclockid(3) on Linux
    except OSError:
        return 0.0


def _limits(controller: str, file: str) -> list[str]:
    """The texts of this file in the own control group and in all above it, whose limits hold too."""
    files = [group / file for group in _groups(controller)]
    return [file.read_text().strip() for file in files if file.is_file()]


def _groups(controller: str) -> Iterator[Path]:
    """Folders of the own control group and of all above it that are mounted here (man 7 cgroups, man 5 proc)."""
    if not (PROCESS / "cgroup").is_file():  # another system, or a kernel without groups
        return
    groups = (line.split(":", 2) for line in os.fsdecode((PROCESS / "cgroup").read_bytes()).splitlines())
    own = next((path for _, names, path in groups if controller in names.split(",")), "/")
    for line in os.fsdecode((PROCESS / "mountinfo").read_bytes()).splitlines():
        place, _, kind = line.partition(" - ")
        file_system, _, options = kind.split(" ", 2)
        if controller not in {"cgroup2": [VERSION_2], "cgroup": options.split(",")}.get(file_system, []):
            continue
        root, mount = place.split(" ")[3:5]
        # In a container the mount begins at the container's own group, whose path may be that of the host.
        inside = PurePosixPath(own).is_relative_to(root) and ".." not in own
        relative = PurePosixPath(own).relative_to(root) if inside else PurePosixPath()
        yield from (Path(mount) / part for part in (relative, *relative.parents))


def allow_open_files(wanted: int) -> int:
    """Raise the limit of open files to `wanted`, or as far as the system allows, and return what there is then.

    The usual default of 1024 is less than the number of connections that a server takes.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    return max(soft, most)


def give_back_memory() -> None:
    """Give what this process has freed back to the system, where that is the C library's to do."""
    with suppress(AttributeError):  # of glibc alone
        _c_library().malloc_trim(0)


@cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)
