import asyncio

from app.stores.memory import MemoryStore

VALUE = bytes(10)


def store_of(values: int, **options) -> MemoryStore:
    """One that holds so many."""
    return MemoryStore(**{"max_bytes": len(VALUE) * values, "ttl_s": 60, **options})


async def test_the_least_recently_used_goes_first():
    store = store_of(3)
    for key in "abc":
        assert await store.keep(key, VALUE)
    assert await store.find("a") == VALUE
    assert await store.keep("d", VALUE)
    assert [bool(await store.find(key)) for key in "abcd"] == [True, False, True, True]


async def test_values_expire_and_are_freed_by_the_next():
    now = 0.0
    store = store_of(3, clock=lambda: now)
    await store.keep("a", VALUE)
    now = 59.9
    assert await store.find("a")
    now = 60
    assert await store.find("a") is None
    await store.keep("b", VALUE)  # there is room for both
    assert store._values.currsize == len(VALUE)


async def test_expired_values_are_freed_without_further_requests():
    store = store_of(3, ttl_s=0.1)
    await store.keep("a", VALUE)
    while store._sweep:
        await asyncio.sleep(0.01)
    assert store._values.currsize == 0


async def test_a_value_over_the_limit_is_not_kept_and_drops_nothing():
    store = store_of(1)
    assert await store.keep("a", VALUE)
    assert not await store.keep("b", 2 * VALUE)
    assert await store.find("a")
