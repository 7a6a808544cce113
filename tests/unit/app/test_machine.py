"""app/machine.py: what a control group allows, in both versions."""

import os
import sys

import numpy as np
import pytest

from app import machine

MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.mark.parametrize(
    ("allowed", "files", "expected"),
    [
        (machine.allowed_cores, {}, 64),
        (machine.allowed_cores, {"cpu.max": "max 100000"}, 64),
        (machine.allowed_cores, {"cpu.max": "250000 100000"}, 2),
        (machine.allowed_cores, {"cpu.max": "50000 100000"}, 1),
        (machine.allowed_cores, {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 64),
        (machine.allowed_cores, {"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"}, 4),
        (machine.allowed_memory, {}, MEMORY),
        (machine.allowed_memory, {"memory.max": "max"}, MEMORY),
        (machine.allowed_memory, {"memory.max": "1048576"}, 2**20),
        (machine.allowed_memory, {"memory/memory.limit_in_bytes": "9223372036854771712"}, MEMORY),
        (machine.allowed_memory, {"memory/memory.limit_in_bytes": "1048576"}, 2**20),
    ],
)
def test_cores_and_memory_that_a_group_allows(monkeypatch, tmp_path, allowed, files, expected):
    """On a machine of 64 cores."""
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(64)))
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert allowed() == expected


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")
def test_memory_that_is_written_to_is_resident():
    before = machine.resident_memory()
    written = np.ones(2**26, np.uint8)  # more than the allocator would take from memory that it keeps
    assert machine.resident_memory() - before == pytest.approx(len(written), rel=0.1)
    del written
    assert machine.resident_memory() - before < 2**22
