"""app/images/lanes.py: which request goes first, and which waits for which."""

import asyncio

import pytest

from app.images.lanes import Lanes


class Race:
    """Entries by name, in the order in which they were let in."""

    def __init__(self, **options) -> None:
        self.lanes = Lanes(**{"max_small": options["workers"], **options})
        self.entered: list[str] = []
        self.tasks: dict[str, asyncio.Task] = {}

    async def come(self, name: str, large_pixels: int = 0) -> None:
        async def enter() -> None:
            await self.lanes.enter(large_pixels)
            self.entered.append(name)

        self.tasks[name] = asyncio.create_task(enter())
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def race(scenario):
    return lambda: asyncio.run(scenario())


@race
async def test_there_are_as_many_as_there_are_workers():
    race = Race(workers=2, max_pixels_in_work=100)
    for name in "abc":
        await race.come(name)
    assert race.entered == ["a", "b"]
    race.lanes.leave(0)
    await settle()
    assert race.entered == ["a", "b", "c"]


@race
async def test_large_ones_leave_a_worker_to_small_ones():
    race = Race(workers=2, max_pixels_in_work=100)
    await race.come("large", 10)
    await race.come("another", 10)
    await race.come("small")
    assert race.entered == ["large", "small"]
    race.lanes.leave(10)
    await settle()
    assert race.entered == ["large", "small", "another"]


@race
async def test_small_ones_are_bounded_too_and_leave_a_worker_to_large_ones():
    race = Race(workers=4, max_small=2, max_pixels_in_work=100)
    for name in "abc":
        await race.come(name)
    await race.come("large", 10)
    assert race.entered == ["a", "b", "large"]
    race.lanes.leave(10)
    await settle()
    assert race.entered == ["a", "b", "large"]
    race.lanes.leave(0)
    await settle()
    assert race.entered == ["a", "b", "large", "c"]


@race
async def test_a_single_worker_does_large_ones_too():
    race = Race(workers=1, max_pixels_in_work=100)
    await race.come("large", 100)
    assert race.entered == ["large"]


@race
async def test_large_ones_wait_in_their_order_until_they_fit():
    race = Race(workers=4, max_pixels_in_work=100)
    await race.come("a", 60)
    await race.come("b", 60)
    await race.come("c", 10)  # would fit, but b was first
    await race.come("small")
    assert race.entered == ["a", "small"]
    race.lanes.leave(60)
    await settle()
    assert race.entered == ["a", "small", "b", "c"]


@race
async def test_a_small_one_may_go_on_as_a_large_one_if_it_would_not_wait():
    race = Race(workers=3, max_small=2, max_pixels_in_work=100)
    for name in "abc":
        await race.come(name)
    assert race.entered == ["a", "b"]
    assert not race.lanes.grow(101)
    assert race.lanes.grow(60)  # c has a place among the small ones now
    await settle()
    assert race.entered == ["a", "b", "c"]
    assert not race.lanes.grow(60)
    await race.come("large", 60)
    race.lanes.leave(0)
    race.lanes.leave(60)
    await settle()
    assert race.entered[-1] == "large"
    assert race.lanes.grow(40)
    race.lanes.leave(60)
    race.lanes.leave(40)
    await race.come("all of it", 100)
    assert race.entered[-1] == "all of it"


@race
async def test_no_small_one_overtakes_a_large_one_that_waits():
    race = Race(workers=3, max_pixels_in_work=100)
    await race.come("small")
    await race.come("large", 60)
    await race.come("waits", 60)
    assert not race.lanes.grow(10)


@pytest.mark.parametrize("when", ["waiting", "let in"])
def test_a_caller_that_gives_up_leaves_nothing_behind(when):
    async def scenario() -> None:
        race = Race(workers=2, max_pixels_in_work=100)
        await race.come("a", 60)
        await race.come("b", 60)
        await race.come("c", 40)
        if when == "let in":
            race.lanes.leave(60)  # b may enter, and gives up before it learns of it
        race.tasks["b"].cancel()
        await settle()
        if when == "waiting":
            race.lanes.leave(60)
        await settle()
        assert race.entered == ["a", "c"]
        race.lanes.leave(40)
        await race.come("all of it", 100)
        assert race.entered[-1] == "all of it"

    asyncio.run(scenario())
