"""Vectors of texts are kept, made a few at a time, and compared as CLIP and SigLIP do."""

import asyncio
import math
import time

import numpy as np
import pytest

from app.errors import DeadlineExceeded, InvalidParameter, Unavailable
from app.inference import phrases as module
from app.inference.phrases import AT_ONCE, Among, Phrases, prompted
from app.inference.scoring import Scoring


class Tower:
    """Gives each text a vector of its own."""

    def __init__(self) -> None:
        self.runs: list[list[str]] = []

    def embed(self, texts):
        self.runs.append([*texts])
        return np.stack([np.full(4, len(text), np.float32) for text in texts])


@pytest.fixture
def phrases():
    phrases = Phrases()
    phrases.tower = Tower()
    yield phrases
    phrases.close()


def embed(phrases, texts, *, left_s=60.0):
    return asyncio.run(phrases.embed(texts, deadline=time.monotonic() + left_s))


def test_a_text_is_embedded_once_and_found_again(phrases):
    assert phrases.known(["a", "bb"]) is None
    vectors = embed(phrases, ["a", "bb", "a"])
    assert vectors[:, 0].tolist() == [1, 2, 1]
    assert embed(phrases, ["bb", "ccc"])[:, 0].tolist() == [2, 3]
    assert phrases.tower.runs == [["a", "bb"], ["ccc"]]
    assert phrases.known(["ccc", "a"])[:, 0].tolist() == [3, 1]


def test_what_was_not_asked_for_longest_is_forgotten(monkeypatch):
    monkeypatch.setattr(module, "CACHE_BYTES", 2 * (16 + module.ENTRY_BYTES))
    phrases = Phrases()
    phrases.tower = Tower()
    embed(phrases, ["a", "bb"])
    embed(phrases, ["a", "ccc"])
    assert [phrases.known([text]) is None for text in ("a", "bb", "ccc")] == [False, True, False]
    phrases.close()


def test_many_texts_are_run_in_parts_until_the_deadline(phrases):
    texts = ["a" * size for size in range(1, 2 * AT_ONCE + 2)]
    assert len(embed(phrases, texts)) == len(texts)
    assert [len(run) for run in phrases.tower.runs] == [AT_ONCE, AT_ONCE, 1]
    with pytest.raises(DeadlineExceeded):
        embed(phrases, ["new"], left_s=0)


def test_without_a_tower_and_after_the_end_there_is_an_error():
    phrases = Phrases()
    with pytest.raises(InvalidParameter, match="reads no texts"):
        embed(phrases, ["a"])
    phrases.tower = Tower()
    phrases.close()
    with pytest.raises(Unavailable):
        embed(phrases, ["a"])


def test_logits_are_of_the_cosine():
    vectors = np.array([[1, 0], [0.6, 0.8]], np.float32)
    scoring = Scoring(labels=("a", "b"), kind="sigmoid")
    among = Among(labels=("a", "b"), vectors=vectors, scoring=scoring, scale=10.0, bias=-3.0)
    assert among.logits(np.array([0, 7.0], np.float32)).tolist() == pytest.approx([-3, 5])
    assert math.isfinite(among.logits(np.zeros(2, np.float32)).sum())


def test_a_prompt_has_the_label_in_its_place():
    assert prompted(["cat", "dog"], "a {}, drawn") == ["a cat, drawn", "a dog, drawn"]
