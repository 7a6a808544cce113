"""app/machine.py: what a control group allows, in both versions."""

import os
import sys

import numpy as np
import pytest

from app import machine

MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.fixture
def group(tmp_path, monkeypatch):
    """Write files of a control group: `group({"cpu.max": "max 100000"})`. The machine has 64 cores."""
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(64)))

    def write(files: dict[str, str]) -> None:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text + "\n")

    return write


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 64),
        ({"cpu.max": "max 100000"}, 64),
        ({"cpu.max": "250000 100000"}, 2),
        ({"cpu.max": "50000 100000"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 64),
        ({"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"}, 4),
    ],
)
def test_cores(group, files, cores):
    group(files)
    assert machine.allowed_cores() == cores


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")
def test_memory_that_is_written_to_is_resident():
    before = machine.resident_memory()
    written = np.ones(2**26, np.uint8)  # more than the allocator would take from memory that it keeps
    assert machine.resident_memory() - before == pytest.approx(len(written), rel=0.1)
    del written
    assert machine.resident_memory() - before < 2**22


@pytest.mark.parametrize(
    ("files", "memory"),
    [
        ({}, MEMORY),
        ({"memory.max": "max"}, MEMORY),
        ({"memory.max": "1048576"}, 2**20),
        ({"memory/memory.limit_in_bytes": "9223372036854771712"}, MEMORY),
        ({"memory/memory.limit_in_bytes": "1048576"}, 2**20),
    ],
)
def test_memory(group, files, memory):
    group(files)
    assert machine.allowed_memory() == memory
