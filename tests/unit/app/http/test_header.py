import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InvalidParameter
from app.http.guard import deadline, request_id

NAMES = ["a", "3f1c-77", "A_b.C-9", "x" * 64, "", "x" * 65, "a b", "a\nlevel=error", "é", "<script>", "a;b"]


@given(name=st.text(st.characters(max_codepoint=255)) | st.sampled_from(NAMES))
def test_a_plain_request_id_is_kept_and_any_other_is_replaced_by_a_new_one(request_of, name):
    found = {request_id(request_of(x_request_id=name)) for _ in range(2)}
    if re.fullmatch(r"[\w.-]{1,64}", name, re.ASCII):
        assert found == {name}
    else:
        assert len(found) == 2
        assert all(re.fullmatch(r"[0-9a-f]{32}", id) for id in found)


@pytest.mark.parametrize(("asked", "seconds"), [("5", 5), ("0.25", 0.25), ("1e-3", 0.001), ("99", 30), ("inf", 30)])
def test_a_deadline_is_at_most_the_setting(request_of, monkeypatch, asked, seconds):
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    assert deadline(request_of(x_request_timeout=asked), max_s=30) == 1000 + seconds
    assert deadline(request_of(), max_s=30) == 1030


@pytest.mark.parametrize("asked", ["", "0", "-1", "nan", "-inf", "soon", "1,5", "5s", "\xb2"])
def test_a_deadline_that_is_not_a_positive_number_is_refused(request_of, asked):
    with pytest.raises(InvalidParameter):
        deadline(request_of(x_request_timeout=asked), max_s=30)
