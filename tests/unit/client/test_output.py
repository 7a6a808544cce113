"""client/vit_serve_client/output.py: a file that was cut anywhere and gone on with is that of an uninterrupted run."""

import csv
import errno
import os
from contextlib import closing
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vit_serve_client.client import Answer
from vit_serve_client.output import Output

MODEL = Answer(name="m", digest="0123456789abcdef")
names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12) | st.sampled_from(
    [
        os.fsdecode(name)
        for name in (b"\xff.png", "é.png".encode("latin-1"), b"a\rb", b"a\nb", b'"', b"\r\n", b",", b"'=1")
    ]
)


def result(*labels: str, id: str | None = None) -> Answer:
    predictions = [Answer(label=label, index=i, score=0.5**i) for i, label in enumerate(labels)]
    return Answer(predictions=predictions, image=Answer(width=1, height=2, format="PNG"), id=id)


PROBLEM = Answer(error=Answer(type="t", title="Bad", status=415, detail='This is "no" image, at all.'))


def outcome(place: int) -> Answer:
    return PROBLEM if place % 3 == 2 else result("a, b", 'q"', id="x" if place % 2 else None)


def write(path, images, *, no_formulas=False):
    """A run that goes on with the file. Returns the images that were in it, and its size after each that is written."""
    output = Output(path, no_formulas=no_formulas)
    output.begin(MODEL, labels=2)
    done, ends = set(output.best), []
    for place, image in enumerate(images):
        if image not in done:
            output.write(image, outcome(place))
            ends.append(path.stat().st_size if path.suffix != ".parquet" else 0)
    output.close()
    assert {image: best is None for image, best in output.best.items()} == {
        image: outcome(place) is PROBLEM for place, image in enumerate(images)
    }
    return done, ends


@given(
    images=st.lists(names, min_size=1, max_size=6, unique=True),
    cut=st.integers(0, 2000),
    kind=st.sampled_from([(".csv", False), (".csv", True), (".jsonl", False)]),
)
def test_a_run_that_was_cut_anywhere_goes_on(tmp_path_factory, images, cut, kind):
    folder = tmp_path_factory.mktemp("output")
    suffix, no_formulas = kind
    whole, broken = folder / f"whole{suffix}", folder / f"broken{suffix}"
    _, ends = write(whole, images, no_formulas=no_formulas)
    broken.write_bytes(whole.read_bytes()[:cut])
    done, _ = write(broken, images, no_formulas=no_formulas)
    assert done == {image for image, end in zip(images, ends, strict=True) if end <= cut}
    assert broken.read_bytes() == whole.read_bytes()


def test_csv_is_read_by_other_programs(tmp_path):
    write(tmp_path / "out.csv", ["a, b\r.png", "c.png", "bad.png"])
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = [(row["image"], row["rank"], row["label"], row["id"], row["error"]) for row in csv.DictReader(file)]
    assert rows == [
        ("a, b\r.png", "1", "a, b", "", ""),
        ("a, b\r.png", "2", 'q"', "", ""),
        ("c.png", "1", "a, b", "x", ""),
        ("c.png", "2", 'q"', "x", ""),
        ("bad.png", "", "", "", PROBLEM.error.detail),
    ]


@pytest.mark.parametrize("text", ["=1+2", "+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "'=1", "a=1", "1"])
def test_cells_that_a_spreadsheet_would_run_are_text_if_that_is_wanted(tmp_path, text):
    for no_formulas, before in ((True, "" if text[0] in "a1" else "'"), (False, "")):
        path = tmp_path / f"{no_formulas}.csv"
        with closing(Output(path, no_formulas=no_formulas)) as output:
            output.begin(MODEL, labels=1)
            output.write(text, result(text))
        with path.open(newline="") as file:
            (row,) = csv.DictReader(file)
        assert (row["image"], row["label"], row["score"]) == (before + text, before + text, "1.0")
        with closing(Output(path, no_formulas=no_formulas)) as output:
            assert output.best == {text: (text, 1.0)}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("out.csv", "hello", "has not written it"),
        ("out.csv", "image,label\na,b\n", "has not written it"),
        ("out.csv", '{"image": "a"}\n', "has not written it"),
        ("out.jsonl", '{"image": "a"}\n', "has not written it"),
        ("out.parquet", "PAR1", "has not written it"),
        ("out.txt", "", r"the output is a \.csv, \.jsonl or \.parquet file"),
    ],
)
def test_another_programs_file_is_not_overwritten(tmp_path, name, text, said):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        Output(path)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {name: text}


def test_a_file_that_another_run_writes_is_left_to_it(tmp_path):
    path = tmp_path / "out.csv"
    with closing(Output(path)), pytest.raises(ValueError, match="another run is writing it"):
        Output(path)
    Output(path).close()


@pytest.mark.parametrize("number", [None, errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_an_output_needs_no_locks(tmp_path, monkeypatch, number):
    """Some systems have none, and some file systems."""

    def flock(*_):
        raise OSError(number, os.strerror(number))

    module = SimpleNamespace(flock=flock, LOCK_EX=2, LOCK_NB=4) if number else None
    monkeypatch.setattr("vit_serve_client.lock.fcntl", module)
    write(tmp_path / "out.csv", ["a.png"])


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_model_that_knows_its_images_has_a_column_more(tmp_path, suffix):
    """An output without it, of an earlier version of this program, stays without."""
    knowing = Answer(MODEL, manifest=Answer(familiarity=Answer(pictures=9)))
    refused = Answer(error=Answer(PROBLEM.error, familiarity=0.01))
    path = tmp_path / f"out{suffix}"
    for images in (("a.png", Answer(result("a"), familiarity=0.5)), ("b.png", refused)), (("c.png", PROBLEM),):
        with closing(Output(path)) as output:
            output.begin(knowing, labels=1)
            for image, of_image in images:
                output.write(image, of_image)
            output.finish()
    with closing(Output(path)) as output:
        assert output.familiarity == {"a.png": 0.5, "b.png": 0.01}
        assert output.best == {"a.png": ("a", 1.0), "b.png": None, "c.png": None}
    older = tmp_path / f"older{suffix}"
    for image in ("a.png", "b.png"):
        with closing(Output(older)) as output:
            output.begin(MODEL if image == "a.png" else knowing, labels=1)
            output.write(image, Answer(result("a"), familiarity=0.5))
            output.finish()
    with closing(Output(older)) as output:
        assert (output.familiarity, [*output.best]) == ({}, ["a.png", "b.png"])
