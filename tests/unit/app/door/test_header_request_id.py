"""app/door/header.py: which names of requests are taken over."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.door.header import request_id

PLAIN = re.compile(r"[0-9a-f]{32}")


@pytest.mark.parametrize("name", ["a", "3f1c-77", "A_b.C-9", "x" * 64])
def test_a_plain_name_is_kept(request_of, name):
    assert request_id(request_of(x_request_id=name)) == name


@pytest.mark.parametrize("name", ["", "x" * 65, "a b", "a\nlevel=error", "é", "<script>", "a;b"])
def test_any_other_is_replaced(request_of, name):
    assert PLAIN.fullmatch(request_id(request_of(x_request_id=name)))


def test_without_one_each_request_gets_its_own(request_of):
    assert len({request_id(request_of()) for _ in range(100)}) == 100


@given(name=st.text(st.characters(max_codepoint=255)))
def test_nothing_else_ever_comes_out(request_of, name):
    assert re.fullmatch(r"[\w.-]{1,64}", request_id(request_of(x_request_id=name)), re.ASCII)
