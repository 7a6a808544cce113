import asyncio

import pytest

from app.settings import Settings
from app.stores.memory import MemoryStore
from app.stores.store import open_store

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


@pytest.mark.parametrize(("max_bytes", "warned"), [(0, False), (256, True), (999, True), (1000, False)])
def test_a_memory_for_less_than_one_image_is_named_at_start(metrics, caplog, max_bytes, warned):
    """As of a person who means MiB. With 0, nothing is to be kept."""
    open_store(settings=Settings(store_max_bytes=max_bytes), namespace="x", least_bytes=1000, metrics=metrics)
    assert ("VIT_STORE_MAX_BYTES has no room for an image and its maps, at least 1000 bytes" in caplog.text) == warned
