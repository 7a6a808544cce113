"""app/client/patience.py: what is asked again, and when no more."""

import asyncio
import time

import pytest

from app.client import requests
from app.client.answers import Problem
from app.client.client import AsyncClient
from app.client.patience import GivenUp, Patient

MODEL = (200, {}, b'{"name": "m"}')


def ask(server: str, *, patience_s: float = 60.0) -> object:
    async def asked() -> object:
        async with AsyncClient(server) as client:
            return await Patient(client, patience_s=patience_s).ask(requests.model())

    return asyncio.run(asked())


def test_a_busy_service_is_asked_again(answering):
    assert ask(answering((502, {}, b"<html>"), (429, {}, b""), MODEL)) == {"name": "m"}


def test_retry_after_is_waited_for(answering):
    server = answering((503, {"Retry-After": "1"}, b""), MODEL)
    start = time.monotonic()
    assert ask(server) == {"name": "m"}
    assert time.monotonic() - start >= 1


def test_what_asking_again_would_not_change_is_the_answer(answering):
    found = ask(answering((404, {}, b"nothing here"), MODEL))
    assert isinstance(found, Problem)
    assert (found.status, found.detail) == (404, "nothing here")


def test_without_a_key_it_gives_up(answering):
    with pytest.raises(GivenUp, match="wants an API key"):
        ask(answering((401, {}, b""), MODEL))


def test_patience_ends(answering):
    with pytest.raises(GivenUp, match=r"nothing was answered for 0\.3 seconds \(503"):
        ask(answering((503, {}, b"")), patience_s=0.3)
    with pytest.raises(GivenUp, match="no answer"):
        ask("http://127.0.0.1:1", patience_s=0.3)
