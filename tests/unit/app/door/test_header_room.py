"""app/door/header.py: who is refused when there is no room."""

import pytest

from app.door.header import check_room
from app.errors import Overloaded


def full(deadline):
    return Overloaded("Full.") if deadline == 9 else None


def empty(deadline):
    return None


CROWDED = {"crowded": True}


@pytest.mark.parametrize(
    ("refusal", "path", "method", "state"),
    [
        (full, "/classify", "POST", {}),
        (full, "/attention/x/verify", "POST", {}),
        (empty, "/classify", "POST", CROWDED),
        (empty, "/attention/x", "GET", CROWDED),
    ],
)
def test_refused_with_a_time_to_come_back(request_of, refusal, path, method, state):
    with pytest.raises(Overloaded) as refused:
        check_room(request_of(path, method, state=state | {"deadline": 9}), refusal=refusal)
    assert 1 <= int(refused.value.headers["Retry-After"]) <= 5


def test_refused_clients_do_not_come_back_together():
    assert len({Overloaded("x").headers["Retry-After"] for _ in range(100)}) > 1


@pytest.mark.parametrize(
    ("refusal", "path", "method", "state"),
    [
        (empty, "/classify", "POST", {}),
        (full, "/attention/x", "GET", {}),
        (full, "/livez", "GET", CROWDED),
        (full, "/readyz", "GET", CROWDED),
    ],
)
def test_admitted(request_of, refusal, path, method, state):
    """`check_room` raises Overloaded otherwise, see `test_refused_with_a_time_to_come_back`."""
    check_room(request_of(path, method, state=state | {"deadline": 9}), refusal=refusal)
