"""app/api/representation.py: content negotiation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.representation import MEDIA_TYPES, preferred_format


@pytest.mark.parametrize(
    ("accept", "format"),
    [
        ("", "png"),
        ("*/*", "png"),
        ("text/html,application/xhtml+xml,image/avif,image/webp,*/*;q=0.8", "png"),
        ("application/json", "json"),
        ("application/*", "json"),
        ("application/x-npy, */*;q=0.1", "npy"),
        ("image/png;q=0.2, application/json;q=0.9", "json"),
        ("image/*;q=0, application/json", "json"),
        ("application/pdf", "png"),
    ],
)
def test_the_format_that_is_liked_best(accept, format):
    assert preferred_format(accept) == format


@given(st.text(max_size=100))
def test_any_header_gives_some_format(accept):
    assert preferred_format(accept) in MEDIA_TYPES
