"""app/images/pool.py with app/images/fork_server.py: real processes, that are made to crash, hang and be killed."""

import asyncio
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from app.errors import UnsupportedType, UnusableImage
from app.images.messages import GarbledAnswer, unpack_answer
from app.images.pool import WorkerFailed, WorkerKilled, WorkerPool, WorkerTimedOut
from app.images.upload import Upload
from app.images.worker import ForkServer, Worker
from app.machine import IMAGES_NICENESS
from tests.support import saboteur, worker_pool
from tests.support.processes import eventually, program
from tests.support.saboteur import (
    BURN,
    CRASH,
    EXIT,
    GATHER,
    HANG_UP,
    HOARD,
    SLEEP,
    SPIN,
    Saboteur,
    WithoutLimits,
    babble,
    claim,
    whoami,
)
from tests.support.specs import preparer_of, spec_of
from tests.support.worker_pool import about

UNPACK = partial(unpack_answer, shape=(8, 8))
started = partial(worker_pool.started, Saboteur(whoami))
until = partial(eventually, seconds=20)


@pytest.fixture
def single() -> Iterator[WorkerPool]:
    """Of one worker."""
    with started(workers=1) as pool:
        yield pool


async def ask(pool: WorkerPool, *uploads: bytes, **options: Any) -> list[bytes | BaseException]:
    runs = (pool.run(about(data, **options)) for data in uploads)
    return await asyncio.gather(*runs, return_exceptions=True)


def worker_of(answer: bytes | BaseException) -> int:
    assert isinstance(answer, bytes), answer
    return int(answer.split()[0])


def state(process: int) -> str:
    """The letter of proc_pid_stat(5)."""
    return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]


def computes(process: int) -> bool:
    """Whether it has, for a tenth of a second: a worker that waits for its first image has not."""
    times = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return sum(map(int, times)) >= 0.1 * os.sysconf("SC_CLK_TCK")


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])


def is_gone(process: int) -> bool:
    try:
        return state(process) == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


async def test_every_request_of_any_size_gets_its_own_answer_from_a_few_processes():
    with started() as pool:
        uploads = [*(b"%d" % number for number in range(50)), *map(bytes, (0, 1, 100_000, 20_000_000))]
        answers = await ask(pool, *uploads)
        pieces = [bytes(10), b"", *(b"%d" % number for number in range(3000)), bytes(3_000_000)]
        uploads.append(b"".join(pieces))
        answers.append(await pool.run(replace(about(b""), upload=Upload(pieces))))
        assert [answer.split(b" ", 3)[1:] for answer in answers] == [[b"1", b"0", upload] for upload in uploads]
        assert {worker_of(answer) for answer in answers} == {*pool.processes().workers}
        assert os.getpid() not in {worker_of(answer) for answer in answers}


LARGE = (2001, 2000)
TOO_LARGE = bytes(2000)  # an upload that is answered with as many bytes


@pytest.mark.parametrize(
    ("end", "failure"),
    [*((end, WorkerFailed) for end in (CRASH, EXIT, HANG_UP, HOARD, TOO_LARGE)), (SPIN, WorkerTimedOut)],
)
async def test_a_worker_that_fails_costs_one_request(end, failure):
    with started() as pool:
        answers = await ask(pool, b"a", end, b"b", b"c", max_answer_bytes=1000)
        assert [type(answer) for answer in answers] == [bytes, failure, bytes, bytes]
        after = await ask(pool, *[b"x"] * 8)
        assert len({worker_of(answer) for answer in after}) == 2  # as many as before


async def test_a_worker_whose_answer_is_garbled_is_ended_and_takes_no_room_from_others(encode):
    with worker_pool.started(babble, workers=3) as pool:
        places = attrgetter("_free_workers", "_free_for_large", "_free_pixels", "_waiting")
        before = deepcopy(places(pool.turns))
        with pytest.raises(GarbledAnswer):
            await pool.run(about(encode(Image.new("1", LARGE)), unpack=UNPACK))
        assert places(pool.turns) == before
        until(lambda: sum(map(is_gone, pool.processes().workers)) == 1)


@pytest.mark.parametrize(
    ("end", "many", "failure"), [(BURN, (2000, 2000), WorkerTimedOut), (GATHER, (6000, 6000), WorkerFailed)]
)
async def test_the_more_pixels_an_image_claims_the_more_time_and_memory_it_may_take(single, end, many, failure):
    """The 0.5 GiB that one gathers are more than the limit of a small image."""
    answers = await ask(single, claim(64, 64) + end, claim(*many) + end, claim(64, 64))
    assert [type(answer) for answer in answers] == [failure, bytes, bytes]


async def test_a_large_upload_ends_no_worker_whatever_was_asked_before():
    """0.25 GiB is all that a small image may take beside it."""
    with worker_pool.started(Saboteur(preparer_of(spec_of((8, 8)))), workers=1) as pool:
        answers = await ask(pool, claim(64, 64), bytes(5 * 2**26), unpack=UNPACK)
    assert [type(answer) for answer in answers] == [UnusableImage, UnsupportedType]


@pytest.mark.parametrize("stopped", [True, False])
async def test_a_worker_that_is_stopped_or_sleeps_counts_as_ended_from_outside(single, monkeypatch, stopped):
    monkeypatch.setattr("app.images.pool.WALL_S", 0.3)
    if stopped:
        os.kill(single.processes().workers[0], signal.SIGSTOP)
    assert [type(answer) for answer in await ask(single, b"x" if stopped else SLEEP)] == [WorkerKilled]
    monkeypatch.setattr("app.images.pool.WALL_S", 60)
    worker_of((await ask(single, b"x"))[0])


async def test_a_worker_that_was_killed_while_idle_is_replaced_unnoticed(single):
    first = worker_of((await ask(single, b"a"))[0])
    os.kill(first, signal.SIGKILL)
    until(lambda: is_gone(first))
    assert worker_of((await ask(single, b"b"))[0]) != first


@pytest.mark.parametrize("victim", [lambda now: now.workers[0], lambda now: now.fork_server], ids=["worker", "parent"])
async def test_a_process_that_is_killed_from_outside_costs_what_is_in_work(single, victim):
    worker = worker_of((await ask(single, b"a"))[0])
    answers = asyncio.ensure_future(ask(single, claim(7000, 7000) + SPIN))
    await asyncio.to_thread(until, lambda: computes(worker))
    os.kill(victim(single.processes()), signal.SIGKILL)
    assert [type(answer) for answer in await answers] == [WorkerKilled]
    worker_of((await ask(single, b"b"))[0])


async def test_a_worker_that_cannot_be_replaced_is_asked_last(tmp_path):
    full = tmp_path / "full"
    with worker_pool.started(saboteur.ForkUnlessFull(whoami, full)) as pool:
        process = worker_of((await ask(pool, b"x"))[0])  # the next to be asked too
        full.touch()
        os.kill(process, signal.SIGKILL)
        until(lambda: is_gone(process))
        answers = [answer for _ in range(3) for answer in await ask(pool, b"x")]
        assert [type(answer) for answer in answers] == [ChildProcessError, bytes, bytes]
        full.unlink()
        assert len({worker_of(answer) for answer in await ask(pool, *[b"x"] * 8)}) == 2


async def test_requests_that_find_the_same_fork_server_ended_start_one_other():
    with started(workers=8) as pool:
        before = pool.processes()
        os.kill(before.fork_server, signal.SIGKILL)
        until(lambda: all(map(is_gone, before.workers)))
        workers = {worker_of(answer) for answer in await ask(pool, *[b"x"] * 32)}
        assert len(workers) == 8
        assert {parent(worker) for worker in workers} == {pool.processes().fork_server} != {before.fork_server}


def test_a_worker_that_ends_before_its_first_image_ends_the_start():
    with pytest.raises(ChildProcessError, match="no process"), worker_pool.started(WithoutLimits(whoami)):
        pass


@pytest.fixture
def fork_server() -> Iterator[ForkServer]:
    server = ForkServer(work=Saboteur(whoami), max_pixels=10**6)
    yield server
    server.stop()


def test_a_fork_server_that_another_thread_has_stopped_counts_as_ended(fork_server):
    fork_server.stop()
    with pytest.raises(ConnectionError):
        fork_server.renew(Worker())


def test_a_process_of_an_earlier_fork_server_does_not_end_this_one(fork_server):
    worker = Worker(process=os.getpid())  # no child of the fork server
    assert fork_server.renew(worker) == -signal.SIGKILL
    assert fork_server.is_alive()
    assert worker.is_ready()
    worker.close()


def test_a_worker_whose_process_ended_with_its_fork_server_kills_nothing(monkeypatch):
    """0 stands for the whole group in kill(2): for the service."""
    killed = []
    monkeypatch.setattr(os, "kill", lambda *which: killed.append(which))
    Worker(process=0).kill()
    assert killed == []


def test_nothing_is_left_after_the_stop_and_nothing_starts():
    with started() as pool:
        fork_server, workers = pool.processes()
    until(lambda: all(map(is_gone, (fork_server, *workers))))
    with pytest.raises(ConnectionError):
        pool.start()


def test_the_stop_ends_a_thread_that_waits_for_a_new_process(single):
    fork_server, (worker,) = single.processes()
    with ThreadPoolExecutor(2) as threads:
        os.kill(fork_server, signal.SIGSTOP)  # it answers no more
        renewed = threads.submit(single.start)
        until(lambda: is_gone(worker))  # its socket has been closed for a new one
        stopped = threads.submit(single.stop)
        with pytest.raises(ConnectionError):
            renewed.result(20)
        stopped.result(10)
        assert is_gone(fork_server)


async def test_signals_for_the_whole_group_do_not_end_them_and_they_yield_to_the_model(single):
    before = worker_of((await ask(single, b"a"))[0])
    fork_server = single.processes().fork_server
    for process in (fork_server, before):
        for kind in (signal.SIGINT, signal.SIGTERM):
            os.kill(process, kind)
    assert worker_of((await ask(single, b"b"))[0]) == before
    assert not is_gone(fork_server)
    assert os.getpriority(os.PRIO_PROCESS, before) == min(os.nice(0) + IMAGES_NICENESS, 19)


async def test_a_caller_that_leaves_takes_no_worker_with_it():
    with started() as pool:
        before = pool.processes()
        gone = [asyncio.ensure_future(pool.run(about(b"x" * 1_000_000))) for _ in range(6)]
        await asyncio.sleep(0)
        for task in gone:
            task.cancel()
        worker_of((await ask(pool, b"y"))[0])
        assert pool.processes() == before


async def test_a_large_image_waits_for_another(encode):
    """What the workers do is what they do in the service."""
    with worker_pool.started(preparer_of(spec_of((8, 8)))) as pool:
        small, large = (about(encode(Image.new("RGB", size)), unpack=UNPACK) for size in ((2000, 2000), LARGE))
        await pool.turns.enter(4_500_000)  # as another large image
        waits = asyncio.ensure_future(pool.run(large))
        assert (await pool.run(small)).size == (2000, 2000)
        assert not waits.done()
        pool.turns.leave(4_500_000)
        assert (await waits).size == LARGE


KILLED = """
import asyncio, sys
from tests.support.saboteur import SPIN, Saboteur, claim, whoami
from tests.support.worker_pool import about, started
async def main():
    fork_server, workers = pool.processes()
    print(fork_server, *workers, flush=True)
    await pool.run(about(claim(7000, 7000) + SPIN))
with started(Saboteur(whoami)) as pool:
    asyncio.run(main())
"""


def test_they_end_with_the_service_even_when_it_is_killed_and_they_hang():
    with program(KILLED) as service:
        processes = [int(number) for number in service.stdout.readline().split()]
        assert len(processes) == 3
        until(lambda: any(map(computes, processes[1:])))
        assert not any(map(is_gone, processes))
    until(lambda: all(map(is_gone, processes)))


def test_they_get_no_secret(monkeypatch):
    secrets = {"VIT_API_KEYS": "s3cret", "VIT_STORE": "redis://:s3cret@host", "AWS_SECRET_ACCESS_KEY": "s3cret"}
    for name, value in {**secrets, "LC_ALL": "C.UTF-8"}.items():
        monkeypatch.setenv(name, value)
    with started() as pool:
        fork_server, workers = pool.processes()
        for process in (fork_server, *workers):
            environment = Path(f"/proc/{process}/environ").read_bytes()
            assert b"s3cret" not in environment
            assert b"LC_ALL=C.UTF-8" in environment
            assert b"OPENBLAS_NUM_THREADS=1" in environment
