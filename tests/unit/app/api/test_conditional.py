"""app/api/conditional.py: an answer is drawn once for a client that keeps its copy."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi import Request, Response

from app.api.conditional import MAX_AGE_S, draw_unless_known
from app.api.drawings import Drawings
from app.api.representation import Format
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
    "if_none_match", [ETAG, f"W/{ETAG}", f"{OTHER}, {ETAG}", f"W/{OTHER} , W/{ETAG}", f'"a, b", {ETAG}', "*", " * "]
)
async def test_a_client_that_has_the_answer_gets_304_and_nothing_is_drawn(if_none_match):
    response, done = await answered(if_none_match)
    assert (response.status_code, response.body) == (304, b"")
    assert response.headers["etag"] == ETAG
    assert response.headers["cache-control"] == f"private, max-age={MAX_AGE_S}"
    assert response.headers["vary"] == "Accept"
    assert "content-type" not in response.headers
    assert done == []


async def test_tags_may_stand_on_several_lines():
    response, done = await answered(OTHER, ETAG)
    assert (response.status_code, done) == (304, [])


@pytest.mark.parametrize(
    "if_none_match",
    ["", OTHER, f"W/{OTHER}", ETAG.strip('"'), ETAG[:-2] + '"', f'"*", {OTHER}', f'"{ETAG}"', f'"x{ETAG}x"'],
)
async def test_any_other_tag_gets_the_answer(if_none_match):
    response, done = await answered(if_none_match)
    assert (response.status_code, len(done)) == (200, 3)


@pytest.mark.parametrize(
    "recipe", [("map", 3, None, 0.25), ("map", "3", None, 0.5), ("map", 3, None), ("map", 3, None, 0.5, False)]
)
async def test_another_recipe_has_another_tag(recipe):
    response, _ = await answered(recipe=recipe)
    assert response.headers["etag"] != ETAG


async def test_a_client_names_a_format_or_prefers_one_of_those_there_are():
    json, _ = await answered(accept="application/x-npy, application/json;q=0.1")
    assert (json.media_type, json.headers["etag"] != ETAG) == ("application/json", True)
    png, _ = await answered(accept="application/json", format="png")
    assert png.media_type == "image/png"
