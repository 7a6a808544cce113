"""app/api/body/json_reader.py: bodies in JSON are read beside the event loop, and admission counts them."""

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from app.api.body.json_reader import MAX_ON_LOOP_BYTES, JsonReader
from app.door.admission import Admission
from app.errors import DeadlineExceeded, Overloaded
from app.lifecycle import Lifecycle

LARGE = bytes(MAX_ON_LOOP_BYTES + 1)


@pytest.fixture
def admission() -> Admission:
    return Admission(max_images=2, max_wait_s=1, image_s=0, lifecycle=Lifecycle())


@pytest.fixture
def reader(admission: Admission) -> Iterator[JsonReader]:
    reader = JsonReader(admission=admission)
    yield reader
    reader.close()


def soon() -> float:
    return time.monotonic() + 60


async def test_a_short_body_is_read_at_once_and_a_longer_one_in_another_thread(reader):
    found = [await reader.read(lambda _: threading.get_ident(), body, deadline=soon()) for body in (LARGE[1:], LARGE)]
    assert [thread == threading.get_ident() for thread in found] == [True, False]


async def test_the_loop_goes_on_and_counts_a_body_and_another_waits_no_longer_than_its_deadline(reader, admission):
    release = threading.Event()
    reading = asyncio.create_task(reader.read(lambda body: release.wait(60), LARGE, deadline=soon()))
    await asyncio.sleep(0)
    assert admission.images == 1
    try:
        with pytest.raises(DeadlineExceeded):
            await reader.read(bytes, LARGE, deadline=time.monotonic() + 0.01)
    finally:
        release.set()
    await reading
    assert admission.images == 0


async def test_a_full_service_reads_no_body(reader, admission):
    with admission.admit(2), pytest.raises(Overloaded):
        await reader.read(lambda body: pytest.fail("it was read"), b"{}", deadline=soon())
