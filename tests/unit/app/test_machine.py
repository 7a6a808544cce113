"""app/machine.py: what a control group allows, in both versions, and which GPUs there are."""

import os
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from app import machine
from app.errors import CannotStart

MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


V2 = ("0::/own.slice/my.service", "0 0 0:1 / {mount} rw - cgroup2 cgroup2 rw")
V1 = (
    "4:cpu,cpuacct:/batch/job\n3:memory:/batch/job\n0::/",
    "0 0 0:1 / {mount}/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "0 0 0:2 / {mount}/memory rw - cgroup cgroup rw,memory\n"
    "0 0 0:3 / {mount}/unified rw - cgroup2 cgroup2 rw",
)
OWN = "own.slice/my.service"
# In a container: a namespace of its own, one of the host's, and a parent of the namespace's root.
NAMESPACE = ("0::/", V2[1])
OF_HOST = ("0::/docker/1f/inner", "0 0 0:1 /docker/1f {mount} rw - cgroup2 cgroup2 rw")
ABOVE = ("0::/../other", V2[1])


@pytest.mark.parametrize(
    ("allowed", "groups", "files", "expected"),
    [
        (machine.allowed_cores, V2, {}, 64),
        (machine.allowed_cores, V2, {f"{OWN}/cpu.max": "250000 100000"}, 2),
        (machine.allowed_cores, V2, {f"{OWN}/cpu.max": "800000 100000", "own.slice/cpu.max": "300000 100000"}, 3),
        (machine.allowed_cores, V1, {"cpu,cpuacct/batch/job/cpu.cfs_quota_us": "400000"}, 4),
        (machine.allowed_cores, V1, {"cpu,cpuacct/batch/cpu.cfs_quota_us": "200000"}, 2),
        (machine.allowed_memory, V2, {}, MEMORY),
        (machine.allowed_memory, V2, {f"{OWN}/memory.max": "1048576"}, 2**20),
        (machine.allowed_memory, V2, {f"{OWN}/memory.max": "2097152", "own.slice/memory.max": "1048576"}, 2**20),
        (machine.allowed_memory, V2, {f"{OWN}/memory.max": "2097152", f"{OWN}/memory.high": "1048576"}, 2**20),
        (machine.allowed_memory, V2, {"another.slice/memory.max": "1048576"}, MEMORY),
        (machine.allowed_memory, V1, {"memory/batch/job/memory.limit_in_bytes": "9223372036854771712"}, MEMORY),
        (machine.allowed_memory, V1, {"memory/memory.limit_in_bytes": "1048576"}, 2**20),
        (machine.allowed_memory, NAMESPACE, {"memory.max": "1048576"}, 2**20),
        (machine.allowed_memory, OF_HOST, {"inner/memory.max": "1048576"}, 2**20),
        (machine.allowed_memory, ABOVE, {"memory.max": "1048576"}, 2**20),
        (machine.allowed_memory, ("", ""), {}, MEMORY),
    ],
)
def test_cores_and_memory_that_the_groups_allow(monkeypatch, tmp_path, allowed, groups, files, expected):
    """On a machine of 64 cores. Above a group, limits hold as in it."""
    monkeypatch.setattr(machine, "PROCESS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(64)))
    for name, text in zip(("cgroup", "mountinfo"), groups, strict=True):
        other = b"2 1 8:17 / /media/M\xfcsik rw - vfat /dev/sdb1 rw\n" if name == "mountinfo" else b""  # not UTF-8
        (tmp_path / name).write_bytes(other + text.format(mount=tmp_path / "mount").encode())
    for name, text in files.items():
        file = tmp_path / "mount" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
        if file.name == "cpu.cfs_quota_us":
            file.with_name("cpu.cfs_period_us").write_text("100000\n")
    assert allowed() == expected


def test_a_refused_priority_is_done_without(monkeypatch):
    monkeypatch.setattr(os, "nice", Mock(side_effect=PermissionError))
    machine.yield_by(5)


PEEK = """
import ctypes, os
from app.machine import hide_memory
if os.getuid() == 0:  # who may read everything
    os.setgid(65534)
    os.setuid(65534)
ctypes.CDLL(None).prctl(4, 1)  # as a service begins
HIDE
service = os.getpid()
if os.fork() == 0:
    ctypes.CDLL(None).prctl(4, 1)  # as after the start of another program
    try:
        print(b"s3cret" in open(f"/proc/{service}/environ", "rb").read())
    except PermissionError:
        print("refused")
else:
    os.wait()
"""


@pytest.mark.parametrize(("hide", "found"), [("", "True"), ("hide_memory()", "refused")])
def test_a_process_of_the_same_user_reads_no_environment(hide, found):
    peek = [sys.executable, "-c", PEEK.replace("HIDE", hide)]
    environment = {**os.environ, "VIT_API_KEYS": "s3cret"}
    assert subprocess.run(peek, env=environment, capture_output=True, text=True).stdout.strip() == found


@pytest.mark.parametrize(("of_init", "of_count", "count"), [(0, 0, 2), (100, 0, 0), (0, 100, 0)])
def test_gpus_are_counted_and_a_driver_that_does_not_work_has_none(monkeypatch, of_init, of_count, count):
    def counted(by_reference):
        by_reference._obj.value = 2
        return of_count

    driver = SimpleNamespace(cuInit=lambda flags: of_init, cuDeviceGetCount=counted)
    monkeypatch.setattr(machine.ctypes, "CDLL", lambda name: driver)
    assert machine.count_gpus() == count


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("flags\t\t: fpu lm cx16 lahf_lm sse3", "lacks popcnt, sse4_1, sse4_2, ssse3: x86-64-v2 is needed"),
        ("flags\t\t: lm cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3", None),
        ("Features\t: fp asimd", None),
        ("", None),
    ],
    ids=["qemu64", "Westmere", "arm64", "not told"],
)
def test_a_processor_that_libraries_would_end_on_is_named(monkeypatch, tmp_path, flags, says):
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\n{flags}\n")
    monkeypatch.setattr(machine, "PROCESSOR", tmp_path / "cpuinfo")
    with pytest.raises(CannotStart, match=says) if says else nullcontext():
        machine.check_processor()
