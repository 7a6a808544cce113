"""Texts in parameters: as they stand in a query, in JSON and in a form."""

import pytest
from pydantic import ValidationError

from app.api.phrases import MOST_CHARACTERS, MOST_TEXTS, PhraseParameters


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        ("a red hat,a dog", ("a red hat", "a dog")),
        (" a red hat , a dog ", ("a red hat", "a dog")),
        (["a red hat,a dog"], ("a red hat", "a dog")),  # of a query, by FastAPI
        ('["a red hat", "a dog"]', ("a red hat", "a dog")),  # of JSON, and of a form
        ('["a hat, red"]', ("a hat, red",)),
    ],
)
def test_labels_stand_apart_by_commas_or_in_a_list(given, labels):
    assert PhraseParameters(labels=given).labels == labels


@pytest.mark.parametrize(
    "wrong",
    [
        {"labels": ""},
        {"labels": "a,,b"},
        {"labels": "[1]"},
        {"labels": "[broken"},
        {"labels": "[" * 400},
        {"labels": '["\\ud800"]'},  # half of a character, which no tokeniser reads
        {"labels": "x," * MOST_TEXTS + "x"},
        {"labels": "x" * (MOST_CHARACTERS + 1)},
        {"prompt": "a photo"},
    ],
)
def test_other_texts_are_refused(wrong):
    with pytest.raises(ValidationError):
        PhraseParameters(**wrong)
