"""app/api/render.py: an answer is drawn once for a client that keeps its copy, in the format that it prefers; and there
is a bound on what is drawn at a time, and on when it begins.
"""

import asyncio
import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi import Request, Response
from hypothesis import given
from hypothesis import strategies as st

from app.api.render import MAX_AGE_S, MEDIA_TYPES, Drawings, Format, draw_unless_known, preferred_format
from app.errors import DeadlineExceeded, Overloaded
from app.telemetry.request_state import RequestState
from app.telemetry.stages import Stages

RECIPE = ("map", 3, None, 0.5)


async def answered(*if_none_match: str, accept: str = "", **asked: Any) -> tuple[Response, list[str]]:
    """The answer, and what was done for it: the format that was made, the thread that drew, and the
    stages that were timed."""
    done: list[str] = []

    def draw() -> bytes:
        done.append(threading.current_thread().name)
        return b"drawn"

    async def render(kind: Format) -> Callable[[], bytes]:
        done.append(kind)
        return draw if kind == "png" else lambda: b"{}"

    stages = Stages(observe=lambda stage, seconds: done.append(stage))
    headers = [*((b"if-none-match", line.encode()) for line in if_none_match), (b"accept", accept.encode())]
    request = Request({"type": "http", "headers": headers})
    RequestState.of(request.scope).stages = stages
    asked_for = {"recipe": RECIPE, "formats": ("png", "json"), "render": render, "format": None, **asked}
    with ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
        return await draw_unless_known(request, Drawings(pool=pool, max_in_work=1), **asked_for), done


ETAG = '"73276c0559fbde8c18eb8d656654f85d"'  # in every process: replicas answer for each other
OTHER = f'"{"0" * 32}"'


async def test_a_first_answer_is_drawn_in_the_pool_and_timed():
    response, done = await answered(max_age_s=60)
    assert (response.status_code, response.body, response.media_type) == (200, b"drawn", "image/png")
    assert response.headers["etag"] == ETAG
    assert response.headers["cache-control"] == "private, max-age=60"
    assert response.headers["vary"] == "Accept"
    assert done == ["png", "pool_0", "render"]


@pytest.mark.parametrize(
    "lines",
    [
        *([line] for line in (ETAG, f"W/{ETAG}", f"{OTHER}, {ETAG}", f"W/{OTHER} , W/{ETAG}", f'"a, b", {ETAG}')),
        *(["*"], [" * "], [OTHER, ETAG]),
    ],
)
async def test_a_client_that_has_the_answer_gets_304_and_nothing_is_drawn(lines):
    response, done = await answered(*lines)
    assert (response.status_code, response.body) == (304, b"")
    assert response.headers["etag"] == ETAG
    assert response.headers["cache-control"] == f"private, max-age={MAX_AGE_S}"
    assert response.headers["vary"] == "Accept"
    assert "content-type" not in response.headers
    assert done == []


@pytest.mark.parametrize(
    "if_none_match",
    ["", OTHER, f"W/{OTHER}", ETAG.strip('"'), ETAG[:-2] + '"', f'"*", {OTHER}', f'"{ETAG}"', f'"x{ETAG}x"'],
)
async def test_any_other_tag_gets_the_answer(if_none_match):
    response, done = await answered(if_none_match)
    assert (response.status_code, len(done)) == (200, 3)


async def test_a_client_names_a_format_or_prefers_one_of_those_there_are():
    json, _ = await answered(accept="application/x-npy, application/json;q=0.1")
    assert (json.media_type, json.headers["etag"] != ETAG) == ("application/json", True)
    png, _ = await answered(accept="application/json", format="png")
    assert png.media_type == "image/png"


@pytest.mark.parametrize(
    ("accept", "format"),
    [
        ("", "png"),
        ("*/*", "png"),
        ("text/html,application/xhtml+xml,image/avif,image/webp,*/*;q=0.8", "png"),
        ("application/json", "json"),
        ("application/*", "json"),
        ("image/*;q=0, application/json", "json"),
        ("application/json;q=0", "png"),
        ("application/pdf", "png"),
        ("nonsense;q=x, ;,/", "png"),
        ("application/json, text/plain, */*", "json"),  # axios
        ("application/x-npy, */*", "npy"),
    ],
)
def test_the_preferred_format(accept, format):
    assert preferred_format([accept], among=MEDIA_TYPES) == format


@given(
    weights=st.lists(st.integers(1, 1000), min_size=3, max_size=3, unique=True),
    others=st.lists(st.text(st.characters(exclude_characters=","), max_size=30), max_size=4),
    chance=st.randoms(use_true_random=False),
)
def test_the_highest_weight_wins_whatever_else_the_header_says(weights, others, chance):
    entries = [f"{media_type};q={w / 1000}" for media_type, w in zip(MEDIA_TYPES.values(), weights, strict=True)]
    header = [*entries, *others]
    chance.shuffle(header)
    assert preferred_format(header, among=MEDIA_TYPES) == list(MEDIA_TYPES)[weights.index(max(weights))]


@pytest.fixture
def drawings() -> Iterator[Drawings]:
    """Two at most, drawn by one thread."""
    with ThreadPoolExecutor(1) as pool:
        yield Drawings(pool=pool, max_in_work=2)


@pytest.fixture
def go_on() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


async def begun(drawings: Drawings, render: Callable[[], object]) -> asyncio.Task:
    drawn = asyncio.create_task(drawings.draw(render, deadline=math.inf))
    await asyncio.sleep(0)
    return drawn


async def test_a_drawing_over_the_limit_is_refused_at_once(drawings, go_on):
    drawn = [await begun(drawings, go_on.wait) for _ in range(2)]
    with pytest.raises(Overloaded):
        await drawings.draw(bytes, deadline=math.inf)
    go_on.set()
    assert await asyncio.gather(*drawn) == [True, True]
    assert await drawings.draw(bytes, deadline=math.inf) == b""


@pytest.mark.parametrize("left_s", [0.05, -1])
async def test_a_drawing_that_waits_until_its_deadline_never_begins(drawings, go_on, left_s):
    late = []
    first = await begun(drawings, go_on.wait)
    with pytest.raises(DeadlineExceeded):
        await drawings.draw(lambda: late.append(1), deadline=time.monotonic() + left_s)
    go_on.set()
    await first
    await drawings.draw(bytes, deadline=math.inf)
    assert late == []


async def test_a_failed_drawing_frees_its_place(drawings):
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            await drawings.draw(lambda: 1 / 0, deadline=math.inf)


async def test_a_drawing_past_its_deadline_counts_until_it_ends(drawings, go_on):
    with pytest.raises(DeadlineExceeded):
        await drawings.draw(go_on.wait, deadline=time.monotonic() + 0.05)
    second = await begun(drawings, bytes)
    with pytest.raises(Overloaded):
        await drawings.draw(bytes, deadline=math.inf)
    go_on.set()
    assert await second == b""
    assert await drawings.draw(bytes, deadline=math.inf) == b""


async def test_a_drawing_for_a_client_that_disconnected_never_begins(drawings, go_on):
    drawn = []
    first = await begun(drawings, go_on.wait)
    for _ in range(100):
        gone = await begun(drawings, lambda: drawn.append(1))
        gone.cancel()
        await asyncio.wait([gone])
        await asyncio.sleep(0)
    go_on.set()
    assert await first
    assert await drawings.draw(bytes, deadline=math.inf) == b""
    assert drawn == []
