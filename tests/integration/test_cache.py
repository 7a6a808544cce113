"""Packed weights in real processes: replicas that start at once and share pages, and places that cannot be written."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.support.processes import served


def folders(cache: Path) -> list[str]:
    return [folder.name for folder in cache.iterdir()]


def answer(base: str, star: bytes) -> dict:
    found = httpx.post(f"{base}/classify", content=star, timeout=60).raise_for_status().json()["results"][0]
    return {"predictions": found["predictions"], "map": httpx.get(base + found["attention"]).content}


def mapped_kib(pid: int, folder: Path) -> tuple[int, int]:
    """What a process has of the files of a folder in memory, and how much of that others have too."""
    found = {"Rss": 0, "Shared_Clean": 0, "Shared_Dirty": 0}
    inside = False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        key, *rest = line.split()
        if not key.endswith(":"):
            inside = str(folder) in line
        elif inside and key[:-1] in found:
            found[key[:-1]] += int(rest[0])
    return found["Rss"], found["Shared_Clean"] + found["Shared_Dirty"]


def test_replicas_that_start_at_once_make_one_folder_and_share_its_pages(tmp_path, star):
    with ExitStack() as running, ThreadPoolExecutor(2) as starting:
        replicas = list(
            starting.map(
                lambda _: running.enter_context(served(cache=str(tmp_path), drain_delay_s="0", model_threads="2")),
                range(2),
            )
        )
        assert len(folders(tmp_path)) == 1
        first, second = (answer(base, star) for _, base in replicas)
        assert first["predictions"][0]["label"] == "star"
        assert first == second
        for process, _ in replicas:
            mapped, shared = mapped_kib(process.pid, tmp_path)
            assert mapped > 1000
            assert shared > 0.9 * mapped


@pytest.mark.skipif(os.geteuid() != 0, reason="root mounts a file system that can only be read")
def test_a_cache_that_can_only_be_read_is_used(tmp_path, serve, star):
    cache, read_only = tmp_path / "cache", tmp_path / "read-only"
    with serve(cache=str(cache)):
        pass
    read_only.mkdir()
    bind = ["mount", "--bind", "-o", "ro", str(cache), str(read_only)]
    if subprocess.run(bind, capture_output=True, check=False).returncode:
        pytest.skip("this machine mounts nothing")
    try:
        with served(cache=str(read_only), drain_delay_s="0") as (process, base):
            assert answer(base, star)["predictions"][0]["label"] == "star"
            assert mapped_kib(process.pid, read_only)[0] > 1000
    finally:
        subprocess.run(["umount", str(read_only)], check=True)


def test_without_a_place_for_a_cache_it_serves(tmp_path, serve, star):
    (tmp_path / "file").write_text("no folder")
    with serve(cache=str(tmp_path / "file" / "cache")) as client:
        (result,) = client.post("/classify", content=star).json()["results"]
        assert result["predictions"][0]["label"] == "star"
        assert mapped_kib(os.getpid(), tmp_path) == (0, 0)
