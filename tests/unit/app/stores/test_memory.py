import asyncio
import weakref

from app.maps.record import Record
from app.stores.id import ID_PATTERN
from app.stores.memory import MemoryStore, bytes_of
from tests.support.records import make_prepared, make_record


def record(tens: int = 1) -> Record:
    """One that takes so many times 10 kB."""
    return make_record(image=make_prepared(thumbnail=bytes(10_000 * tens - bytes_of(make_record()))))


def store_of(tens: int, **options) -> MemoryStore:
    """One that holds so many times 10 kB."""
    return MemoryStore(**{"max_bytes": 10_000 * tens, "ttl_s": 60, **options})


async def test_a_record_comes_back_under_an_unguessable_id():
    store = store_of(2)
    first, second = record(), record()
    keys = [await store.put(first), await store.put(second)]
    assert [await store.get(key) for key in keys] == [first, second]
    assert all(ID_PATTERN.fullmatch(key) for key in keys)
    assert keys[0] != keys[1]


async def test_the_least_recently_used_goes_first():
    store = store_of(3)
    a, b, c = [await store.put(record()) for _ in range(3)]
    assert await store.get(a)
    d = await store.put(record())
    assert [bool(await store.get(key)) for key in (a, b, c, d)] == [True, False, True, True]


async def test_records_expire_and_are_freed_by_the_next_put():
    now = 0.0
    store = store_of(3, clock=lambda: now)
    expired = weakref.ref(first := record())
    key = await store.put(first)
    del first
    now = 59.9
    assert await store.get(key)
    now = 60
    assert await store.get(key) is None
    assert expired() is not None
    await store.put(record())  # there is room for both
    assert expired() is None


async def test_expired_records_are_freed_without_further_requests():
    store = store_of(3, ttl_s=0.1)
    expired = weakref.ref(first := record())
    await store.put(first)
    del first
    assert expired() is not None
    while store._sweep:
        await asyncio.sleep(0.01)
    assert expired() is None


async def test_a_record_over_the_limit_is_not_kept_and_drops_nothing():
    store = store_of(1)
    key = await store.put(record())
    assert await store.put(record(2)) is None
    assert await store.get(key)
