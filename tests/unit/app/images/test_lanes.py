"""app/images/lanes.py: which request goes first, and which waits for which."""

import asyncio
from typing import Any

import pytest

from app.errors import Overloaded
from tests.support.worker_pool import lanes


class Race:
    """Entries by name, in the order in which they were let in."""

    def __init__(self, workers: int, *, max_small: int | None = None, **options: Any) -> None:
        self.lanes = lanes(workers=workers, max_small=max_small or workers, max_pixels_in_work=100, **options)
        self.entered: list[str] = []
        self.tasks: dict[str, asyncio.Task] = {}

    async def come(self, name: str, large_pixels: int = 0, size: int = 0) -> None:
        async def enter() -> None:
            await self.lanes.enter(large_pixels, size or large_pixels)
            self.entered.append(name)

        self.tasks[name] = asyncio.create_task(enter())
        await settle()

    async def leave(self, large_pixels: int) -> None:
        self.lanes.leave(large_pixels)
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("workers", "max_small", "steps", "entered"),
    [
        (2, 2, "a b c | leave:0", "a b | c"),  # as many as there are workers
        (2, 2, "a:10 b:10 small | leave:10", "a small | b"),  # large ones leave a worker to small ones
        (4, 2, "a b c large:10 | leave:10 | leave:0", "a b large | | c"),  # small ones leave workers to large ones
        (1, 1, "large:100", "large"),  # a single worker does large ones too
        (4, 4, "a:60 b:60 c:10 small | leave:60", "a small | b c"),  # large ones wait in their order: c would fit
    ],
)
async def test_who_enters(workers, max_small, steps, entered):
    """A step is a name, with its pixels if it is large, or `leave`. After each bar some more have entered."""
    race, expected = Race(workers, max_small=max_small), []
    for part, names in zip(steps.split("|"), entered.split("|"), strict=True):
        for step in part.split():
            name, _, pixels = step.partition(":")
            await (race.leave(int(pixels)) if name == "leave" else race.come(name, int(pixels or 0)))
        expected += names.split()
        assert race.entered == expected


@pytest.mark.parametrize("when", ["waiting", "let in"])
async def test_a_caller_that_gives_up_leaves_nothing_behind(when):
    race = Race(workers=2)
    for name, pixels in (("a", 60), ("b", 60), ("c", 40)):
        await race.come(name, pixels)
    if when == "let in":
        race.lanes.leave(60)  # b may enter, and gives up before it learns of it
    race.tasks["b"].cancel()
    await settle()
    if when == "waiting":
        await race.leave(60)
    assert race.entered == ["a", "c"]
    race.lanes.leave(40)
    await race.come("all of it", 100)
    assert race.entered[-1] == "all of it"


async def test_large_images_that_state_much_in_few_bytes_give_way_to_others():
    race = Race(2, max_large_waiting=2)
    for name, size in (("first", 1), ("tiny", 1), ("photo", 50), ("small", 0), ("drawing", 10)):
        await race.come(name, 50 if size else 0, size)
    assert race.entered == ["first", "small"]
    with pytest.raises(Overloaded):
        await race.tasks["tiny"]
    for _ in range(2):
        await race.leave(50)
    assert race.entered == ["first", "small", "photo", "drawing"]
    assert race.lanes.large == 1


async def test_a_large_image_that_would_wait_too_long_is_refused_before_it_waits():
    race = Race(2, max_wait_s=1.0)
    for name in "abc":
        await race.come(name, 50)
    race.lanes.check(50, 50)
    race.lanes.leave(50, 500.0)  # each pixel takes some seconds, as is learned now
    with pytest.raises(Overloaded):
        race.lanes.check(50, 50)
    race.lanes.check(50, 51)  # would go before the others
