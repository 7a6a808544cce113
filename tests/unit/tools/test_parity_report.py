"""The layout of docs/parity.md; the libraries are not needed."""

from pathlib import Path

import pytest

from tests.parity.__main__ import main
from tests.parity.comparison import Pipeline, Row
from tests.parity.report import HEADER, networks, pipelines, updated

SIZES = ((224, 224), (240, 272))
ORDER = ("timm", "torchvision", "preprocessing")
OLD = "\n".join([HEADER, "## timm 1.0\n\nold\n", "## Preprocessing\n\n- kept: a reason\n"])


def test_a_section_of_networks():
    rows = [
        Row(name="small", sizes=SIZES, errors=(0.0, 2e-7), largest=2.0),
        Row(name="large", sizes=SIZES, errors=(4e-5, 0.0), largest=2.0),
        Row(name="odd", refused="has two heads"),
    ]
    assert networks("timm 1.0", rows).splitlines() == [
        "## timm 1.0",
        "",
        "2 of 3 networks load. The largest error is 2e-05 of the largest logit (large); 1 are within 1e-5.",
        "",
        "| network | size | error | other size | error | largest logit |",
        "| --- | --- | --- | --- | --- | --- |",
        "| small | 224×224 | 0 | 240×272 | 2e-07 | 2.0 |",
        "| large | 224×224 | 4e-05 | 240×272 | 0 | 2.0 |",
        "",
        "Refused, with the reason:",
        "",
        "- odd: has two heads",
    ]


def test_modules_of_a_library_are_counted():
    rows = [
        Row(name="small", module="vit", sizes=SIZES, errors=(0.0, 2e-7), largest=2.0),
        Row(name="large", module="eva", sizes=SIZES, errors=(4e-5, 0.0), largest=2.0),
        Row(name="odd", module="vit", refused="has two heads"),
        Row(name="strange", module="deit", refused="has none"),
    ]
    assert networks("timm 1.0", rows).splitlines()[4:10] == [
        "| module | networks | load | largest error |",
        "| --- | --- | --- | --- |",
        "| `vit` | 2 | 1 | 2e-07 |",
        "| `eva` | 1 | 1 | 4e-05 |",
        "| `deit` | 1 | 0 | 0 |",
        "",
    ]


def test_a_section_of_pipelines():
    rows = [
        Pipeline(name="squash", size=(224, 288), images=5, equal=5, error=8e-6),
        Pipeline(name="tensors", size=(224, 224), images=5, equal=1, error=1.0, reason="rounds in another way"),
    ]
    lines = pipelines("Preprocessing", rows).splitlines()
    assert lines[2].startswith("1 of 2 pipelines give")
    assert lines[4:] == [
        "| pipeline | input | equal images | difference |",
        "| --- | --- | --- | --- |",
        "| squash | 224×288 | 5 of 5 | 8e-06 |",
        "| tensors | 224×224 | 1 of 5 | 1e+00 |",
        "",
        "Not equal, with the reason:",
        "",
        "- tensors: rounds in another way",
    ]


def test_a_new_section_replaces_its_peer_alone():
    found = updated(OLD, {"timm": "## timm 1.1\n\nnew\n"}, ORDER)
    assert found == OLD.replace("1.0", "1.1").replace("old", "new")


def test_a_section_that_was_not_there_takes_its_place():
    found = updated(OLD, {"torchvision": "## torchvision 0.1\n\nnew\n"}, ORDER)
    assert found == OLD.replace("## Prep", "## torchvision 0.1\n\nnew\n\n## Prep")


def test_a_report_begins_from_nothing():
    assert updated("", {"timm": "## timm 1.1\n"}, ORDER) == f"{HEADER}\n## timm 1.1\n"


def test_the_committed_report_is_laid_out_like_this():
    report = Path("docs/parity.md").read_text()
    assert updated(report, {}, ("timm", "transformers", "torchvision", "preprocessing")) == report


def test_a_peer_that_there_is_not_is_refused(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["tests.parity", "keras"])
    with pytest.raises(SystemExit) as refusal:
        main()
    assert refusal.value.code == 2
    assert "keras is not one of timm, transformers, torchvision, preprocessing" in capsys.readouterr().err
