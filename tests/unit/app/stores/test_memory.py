import asyncio
import weakref

from app.maps.record import Record
from app.stores.id import ID_PATTERN
from app.stores.memory import MemoryStore, bytes_of
from tests.support.records import make_prepared, make_record


def put(store: MemoryStore, record: Record) -> str | None:
    return asyncio.run(store.put(record))


def get(store: MemoryStore, key: str) -> Record | None:
    return asyncio.run(store.get(key))


def record(tens: int = 1) -> Record:
    """One that takes so many times 10 kB."""
    return make_record(image=make_prepared(thumbnail=bytes(10_000 * tens - bytes_of(make_record()))))


def store_of(tens: int) -> MemoryStore:
    """One that holds so many times 10 kB."""
    return MemoryStore(max_bytes=10_000 * tens, ttl_s=60)


def test_a_record_comes_back_under_an_unguessable_id():
    store = store_of(2)
    first, second = record(), record()
    keys = [put(store, first), put(store, second)]
    assert [get(store, key) for key in keys] == [first, second]
    assert all(ID_PATTERN.fullmatch(key) for key in keys)
    assert keys[0] != keys[1]


def test_the_least_recently_used_goes_first():
    store = store_of(3)
    a, b, c = (put(store, record()) for _ in range(3))
    assert get(store, a)
    d = put(store, record())
    assert get(store, b) is None
    assert all(get(store, key) for key in (a, c, d))


def test_records_expire_and_are_freed_by_the_next_put():
    now = 0.0
    store = MemoryStore(max_bytes=30_000, ttl_s=60, clock=lambda: now)
    expired = weakref.ref(first := record())
    key = put(store, first)
    del first
    now = 59.9
    assert get(store, key)
    now = 60
    assert get(store, key) is None
    assert expired() is not None
    put(store, record())  # there is room for both
    assert expired() is None


def test_expired_records_are_freed_without_further_requests():
    async def scenario() -> None:
        store = MemoryStore(max_bytes=30_000, ttl_s=0.1)
        expired = weakref.ref(first := record())
        await store.put(first)
        del first
        assert expired() is not None
        while store._sweep:
            await asyncio.sleep(0.01)
        assert expired() is None

    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_a_record_over_the_limit_is_not_kept_and_drops_nothing():
    store = store_of(1)
    key = put(store, record())
    assert put(store, record(2)) is None
    assert get(store, key)
