"""app/images/turns.py: which image goes first, and which waits for which."""

import asyncio

import pytest

from app.images.turns import LARGE_PIXELS, Turns

MEGA = 10**6


class Race:
    """Entries by name, in the order in which they were let in."""

    def __init__(self, workers: int) -> None:
        self.turns = Turns(workers=workers, max_large_pixels=100 * MEGA)
        self.entered: list[str] = []
        self.tasks: dict[str, asyncio.Task] = {}

    async def come(self, name: str, megapixels: int = 0) -> None:
        async def enter() -> None:
            await self.turns.enter(megapixels * MEGA)
            self.entered.append(name)

        self.tasks[name] = asyncio.create_task(enter())
        await settle()

    async def leave(self, megapixels: int) -> None:
        self.turns.leave(megapixels * MEGA)
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("workers", "steps", "entered"),
    [
        (2, "a b c | leave:0", "a b | c"),  # as many as there are workers
        (2, "a:10 b:10 small | leave:10", "a small | b"),  # large ones leave a worker to small ones
        (1, "large:90 b:10 small | leave:90 | leave:10", "large | b | small"),  # a single worker takes all in order
        (4, "a:60 b:60 c:10 small | leave:60", "a small | b c"),  # large ones wait in their order: c would fit
        (3, "a:60 huge:500 c:10 small | leave:60 | leave:500", "a small | huge | c"),  # more than all fits alone
        (2, "a b large:10 c | leave:0 | leave:0", "a b | large | c"),  # small ones pass only where there is no room
        (2, "a:5 b:5 c d | leave:0 | leave:5", "a c | d | b"),
    ],
)
async def test_who_enters(workers, steps, entered):
    """A step is a name, with its megapixels if it is large, or `leave`. After each bar some more have entered."""
    race, expected = Race(workers), []
    for part, names in zip(steps.split("|"), entered.split("|"), strict=True):
        for step in part.split():
            name, _, megapixels = step.partition(":")
            await (race.leave(int(megapixels)) if name == "leave" else race.come(name, int(megapixels or 0)))
        expected += names.split()
        assert race.entered == expected


async def test_an_image_of_four_megapixels_is_small():
    turns = Turns(workers=2, max_large_pixels=1)
    for pixels in (LARGE_PIXELS + 1, LARGE_PIXELS):
        await asyncio.wait_for(turns.enter(pixels), 1)


@pytest.mark.parametrize("when", ["waiting", "let in"])
async def test_a_caller_that_gives_up_leaves_nothing_behind(when):
    race = Race(3)
    for name, megapixels in (("a", 60), ("b", 60), ("c", 40)):
        await race.come(name, megapixels)
    if when == "let in":
        race.turns.leave(60 * MEGA)  # b may enter, and gives up before it learns of it
    race.tasks["b"].cancel()
    await settle()
    if when == "waiting":
        await race.leave(60)
    assert race.entered == ["a", "c"]
    await race.leave(40)
    await race.come("all of it", 100)
    assert race.entered[-1] == "all of it"


async def test_no_large_image_waits_for_more_than_those_before_it_however_many_come():
    """Among smooth photographs and among small images."""
    race = Race(2)
    for n in range(4):
        await race.come(f"large {n}", 12)
        await race.come(f"small {n}")
    for n in range(4):
        await race.leave(0)
        await race.leave(12)
        for more in range(3):
            await race.come(f"more {n} {more}", 5)
            await race.come(f"small {n} {more}")
    assert [name for name in race.entered if name.startswith("large")] == [f"large {n}" for n in range(4)]
