"""app/door/admission.py: who is refused when there is no room."""

import pytest

from app.door.admission import Admission
from app.errors import Overloaded

FULL = Admission(refusal=lambda deadline: Overloaded("Full.") if deadline == 9 else None)
EMPTY = Admission(refusal=lambda deadline: None)
CROWDED = {"crowded": True}


@pytest.mark.parametrize(
    ("admission", "path", "method", "state"),
    [
        (FULL, "/classify", "POST", {}),
        (FULL, "/attention/x/verify", "POST", {}),
        (EMPTY, "/classify", "POST", CROWDED),
        (EMPTY, "/attention/x", "GET", CROWDED),
    ],
)
def test_refused_with_a_time_to_come_back(request_of, admission, path, method, state):
    with pytest.raises(Overloaded) as refused:
        admission.check(request_of(path, method, state=state | {"deadline": 9}))
    assert 1 <= int(refused.value.headers["Retry-After"]) <= 5


def test_refused_clients_do_not_come_back_together():
    assert len({Overloaded("x").headers["Retry-After"] for _ in range(100)}) > 1


@pytest.mark.parametrize(
    ("admission", "path", "method", "state"),
    [
        (EMPTY, "/classify", "POST", {}),
        (FULL, "/attention/x", "GET", {}),
        (FULL, "/livez", "GET", CROWDED),
        (FULL, "/readyz", "GET", CROWDED),
    ],
)
def test_admitted(request_of, admission, path, method, state):
    admission.check(request_of(path, method, state=state | {"deadline": 9}))
