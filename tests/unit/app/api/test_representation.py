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
        ("application/json;q=0", "png"),
        ("image/png;q=0", "json"),
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
