"""app/maps/explainer.py on a model that is held and counted: maps are made once, for all who ask."""

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import fields
from functools import partialmethod
from typing import Any

import numpy as np
import pytest

from app.errors import DeadlineExceeded, InferenceFailed, Overloaded, UnknownAttention
from app.http.admission import Admission
from app.inference.engine import Asked
from app.lifecycle import Lifecycle
from app.maps.explainer import Explainer
from app.maps.record import Maps, RecordFormat
from app.stores.id import new_id
from app.stores.memory import MemoryStore
from app.telemetry.stages import Stages
from tests.support.records import FORMAT, make_kept, make_maps, make_prepared

LIKELY = (2, 0)
LOGITS = np.array([1, 0, 2], np.float32)


class FakeBatcher:
    """Answers with maps of the classes asked for, once it is let go; or fails. Their rollout is that of the pixels."""

    def __init__(self) -> None:
        self.runs: list[tuple[int, ...]] = []
        self.let_go = asyncio.Event()
        self.let_go.set()
        self.fails: Exception | None = None

    async def run(self, graph: str, pixels: np.ndarray, *, asked: Asked, deadline: float, stages: Stages):
        assert (graph, math.isfinite(deadline)) == ("explain", True)
        self.runs.append(tuple(asked.classes))
        await self.let_go.wait()
        if self.fails:
            raise self.fails
        rollout = np.full(5, pixels[0, 0, 0], np.float32)
        maps = make_maps(classes=np.array(asked.classes), rollout=rollout)
        return {field.name: getattr(maps, field.name) for field in fields(Maps)}


class Bench:
    """An explainer, and what it depends on."""

    def __init__(self, metrics: Any, lifecycle: Any) -> None:
        self.batcher, self.metrics = FakeBatcher(), metrics
        self.store = MemoryStore(max_bytes=2**20, ttl_s=60)
        self.places = Admission(max_images=1, max_wait_s=60, image_s=0.1, lifecycle=lifecycle)
        self.explainer = Explainer(
            batcher=self.batcher,
            store=self.store,
            new_id=new_id,
            records=FORMAT,
            places=self.places,
            run_timeout_s=60,
            metrics=metrics,
        )

    async def keep(self, colour: int = 0, maps: Maps | None = None) -> str:
        image = make_prepared(pixels=np.full((2, 2, 3), colour, np.uint8))
        id = await self.explainer.keep(image, LOGITS, maps)
        assert id
        return id

    async def maps(self, id: str, classes: tuple[int, ...] | None = None, *, within_s: float = 60) -> Maps:
        stages = Stages(observe=lambda stage, seconds: None)
        kept = await self.explainer.find(id, stages)
        deadline = time.monotonic() + within_s
        return await self.explainer.maps(id, kept, Asked(classes or kept.classes), deadline=deadline, stages=stages)

    def ask(self, id: str, **how: Any) -> asyncio.Task[Maps]:
        return asyncio.create_task(self.maps(id, **how))

    async def begun(self, runs: int = 1, *, waiting: int = 1) -> None:
        while len(self.batcher.runs) < runs or self.explainer._waiting.total() < waiting:
            await asyncio.sleep(0)

    def damaged(self) -> float:
        labels = {"operation": "get", "reason": "damaged"}
        return self.metrics.registry.get_sample_value("vit_store_failures_total", labels) or 0.0


@pytest.fixture
def bench(metrics, lifecycle) -> Bench:
    return Bench(metrics, lifecycle)


@asynccontextmanager
async def held(bench: Bench) -> AsyncIterator[None]:
    """No run ends before the end of the block; then all do, and nothing was reported that nobody waited for."""
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
    bench.batcher.let_go.clear()
    yield
    bench.batcher.let_go.set()
    await bench.explainer.finish()
    await asyncio.sleep(0)
    assert (reported, bench.places.images, bench.explainer._running) == ([], 0, {})


async def test_all_who_ask_at_once_get_the_maps_of_one_run_and_later_ones_those_that_are_kept(bench):
    id = await bench.keep()
    async with held(bench):
        asking = [bench.ask(id) for _ in range(6)]
        await bench.begun()
        assert bench.places.images == 1
    assert {maps.classes.tolist() == list(LIKELY) for maps in await asyncio.gather(*asking)} == {True}
    assert (await bench.maps(id)).classes.tolist() == list(LIKELY)
    assert bench.batcher.runs == [LIKELY]


async def test_images_and_labels_have_maps_of_their_own(bench):
    dark, light = await bench.keep(3), await bench.keep(200)
    for _ in range(2):  # made, then kept
        assert [(await bench.maps(id)).rollout[0] for id in (dark, light)] == [3, 200]
        assert (await bench.maps(dark, (2, 1))).classes.tolist() == [2, 1]
    assert bench.batcher.runs == [LIKELY, LIKELY, (2, 1)]


async def test_one_that_leaves_or_runs_out_of_time_ends_nobodys_run(bench):
    id = await bench.keep()
    async with held(bench):
        leaves, stays = bench.ask(id), bench.ask(id)
        await bench.begun(waiting=2)
        leaves.cancel()
        with pytest.raises(DeadlineExceeded):
            await bench.maps(id, within_s=0.01)
    assert leaves.cancelled()
    assert (await stays).classes.tolist() == list(LIKELY)
    await bench.maps(id)
    assert len(bench.batcher.runs) == 1


async def test_a_run_that_nobody_waits_for_leaves_its_place_and_the_next_one_begins_anew(bench):
    id = await bench.keep()
    async with held(bench):
        leaves = [bench.ask(id) for _ in range(2)]
        await bench.begun(waiting=2)
        for one in leaves:
            one.cancel()
        await asyncio.wait(leaves)
        await asyncio.sleep(0)
        assert bench.places.images == 0
        comes = bench.ask(id)
        await bench.begun(2)
    assert (await comes).classes.tolist() == list(LIKELY)
    assert len(bench.batcher.runs) == 2


async def test_a_failure_reaches_all_who_wait_is_no_news_for_others_and_the_next_one_asks_again(bench):
    id = await bench.keep()
    bench.batcher.fails = InferenceFailed()
    async with held(bench):
        waiting, leaves = [bench.ask(id) for _ in range(2)], bench.ask(id)
        await bench.begun(waiting=3)
        leaves.cancel()
    assert {type(each) for each in await asyncio.gather(*waiting, return_exceptions=True)} == {InferenceFailed}
    async with held(bench):
        alone = bench.ask(id)
        await bench.begun(2)
        alone.cancel()
    bench.batcher.fails = None
    await bench.maps(id)
    assert len(bench.batcher.runs) == 3


async def test_without_a_place_the_maps_are_made_later_and_those_that_are_kept_are_found(bench):
    seen, unseen = await bench.keep(), await bench.keep()
    await bench.maps(seen)
    with bench.places.admit(1):
        await bench.maps(seen)
        with pytest.raises(Overloaded):
            await bench.maps(unseen)
    await bench.maps(unseen)
    assert len(bench.batcher.runs) == 2


async def test_damaged_maps_are_made_again_and_a_damaged_image_is_unknown(bench, monkeypatch, caplog):
    """And neither is read on the event loop."""

    def beside_the_event_loop(records: RecordFormat, packed: bytes, *, unpack: Any) -> Any:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        return unpack(records, packed)

    for name in ("unpack_image", "unpack_maps"):
        monkeypatch.setattr(
            RecordFormat, name, partialmethod(beside_the_event_loop, unpack=getattr(RecordFormat, name))
        )
    id = await bench.keep()
    await bench.maps(id)
    (of_maps,) = set(bench.store._values) - {id}
    await bench.store.keep(of_maps, FORMAT.pack_image(make_kept()))
    for _ in range(2):
        await bench.maps(id)
    assert (len(bench.batcher.runs), bench.damaged()) == (2, 1)
    await bench.store.keep(id, FORMAT.pack_maps(make_maps()))
    with pytest.raises(UnknownAttention):
        await bench.maps(id)
    assert bench.damaged() == 2
    assert caplog.text.count("nothing of this model") == 2


async def test_maps_without_their_image_are_unknown_and_an_image_that_is_not_kept_has_no_id(bench):
    id = await bench.keep()
    await bench.maps(id)
    del bench.store._values[id]
    with pytest.raises(UnknownAttention):
        await bench.maps(id)
    bench.explainer.store = MemoryStore(max_bytes=1, ttl_s=60)
    assert await bench.explainer.keep(make_prepared(), LOGITS, None) is None


async def test_a_run_that_could_not_end_by_its_callers_deadline_takes_no_place(bench):
    """Else cheap requests that wait for nothing would fill the places of images."""
    bench.places = bench.explainer.places = Admission(max_images=9, max_wait_s=60, image_s=1, lifecycle=Lifecycle())
    id = await bench.keep()
    with bench.places.admit(2), pytest.raises(Overloaded):
        await bench.maps(id, within_s=1)
    assert bench.batcher.runs == []
