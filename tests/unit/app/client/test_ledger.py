"""app/client/ledger.py: what is written, cut anywhere and gone on with, is what an uninterrupted run writes."""

import csv
import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.client.answers import ImageInfo, Prediction, Problem, Result
from app.client.ledger import open_ledger

names = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=12) | st.sampled_from(
    [os.fsdecode(b"\xff.png"), os.fsdecode("é.png".encode("latin-1"))]  # as Python reads names that are no UTF-8
)


def result(*labels: str, id: str | None = None) -> Result:
    predictions = [Prediction(label=label, index=i, score=0.5**i) for i, label in enumerate(labels)]
    return Result(predictions=predictions, image=ImageInfo(width=1, height=2, format="PNG"), id=id)


PROBLEM = Problem(type="t", title="Bad", status=415, detail='This is "no" image, at all.')


def outcome(place: int) -> Result | Problem:
    return PROBLEM if place % 4 == 3 else result(*["star", "a, b", 'q"'][: place % 4], id="x" if place % 2 else None)


@settings(max_examples=60, deadline=None)
@given(
    images=st.lists(names, min_size=1, max_size=6, unique=True),
    cut=st.integers(0, 2000),
    suffix=st.sampled_from([".csv", ".jsonl"]),
)
def test_a_run_that_was_cut_anywhere_goes_on(tmp_path_factory, images, cut, suffix):
    folder = tmp_path_factory.mktemp("ledger")
    whole, broken = folder / f"whole{suffix}", folder / f"broken{suffix}"
    for path in (whole, broken):
        ledger = open_ledger(path)
        for place, image in enumerate(images):
            ledger.write(image, outcome(place))
        ledger.close()
    broken.write_bytes(broken.read_bytes()[:cut])
    ledger = open_ledger(broken)
    done = set(ledger.failed)
    for place, image in enumerate(images):
        if image not in ledger.failed:
            ledger.write(image, outcome(place))
    ledger.close()
    assert done < set(images)
    assert ledger.failed == {image: outcome(place) is PROBLEM for place, image in enumerate(images)}
    assert broken.read_bytes() == whole.read_bytes()


def test_csv_is_read_by_other_programs(tmp_path):
    ledger = open_ledger(tmp_path / "out.csv")
    ledger.write("a, b.png", result("star", "heart", id="x"))
    ledger.write("none.png", result())
    ledger.write("bad.png", PROBLEM)
    ledger.close()
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = [*csv.DictReader(file)]
    assert [(r["image"], r["rank"], r["label"], r["id"]) for r in rows] == [
        ("a, b.png", "1", "star", "x"),
        ("a, b.png", "2", "heart", "x"),
        ("none.png", "", "", ""),
        ("bad.png", "", "", ""),
    ]
    assert rows[-1]["error"] == PROBLEM.detail


def test_lines_of_json_have_the_services_own_words(tmp_path):
    ledger = open_ledger(tmp_path / "out.jsonl")
    ledger.write("a.png", result("star"))
    ledger.write("bad.png", PROBLEM)
    ledger.close()
    first, second = (json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines())
    assert first["result"]["predictions"] == [{"label": "star", "index": 0, "score": 1.0}]
    assert second == {"image": "bad.png", "error": PROBLEM.model_dump(exclude_none=True)}


@pytest.mark.parametrize("text", ["hello", "image,label\na,b\n", '{"other": 1}\n', '{"image": "a", broken}\n'])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_another_programs_file_is_not_overwritten(tmp_path, text, suffix):
    path = tmp_path / f"out{suffix}"
    path.write_text(text)
    with pytest.raises(ValueError, match="has not written it"):
        open_ledger(path)
    assert path.read_text() == text


def test_other_kinds_of_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"a \.csv or a \.jsonl file"):
        open_ledger(tmp_path / "out.txt")
