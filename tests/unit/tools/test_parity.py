"""The record of `make parity` and its summary; the libraries are not needed."""

from tests.parity import record, summary
from tests.parity.comparison import Pipeline, Row
from tests.parity.record import Section

SIZES = ((224, 224), (240, 272))
SECTIONS = {
    "timm": Section(
        title="timm 1.0",
        rows=[
            Row(name="small", module="vit", sizes=SIZES, errors=(0.0, 0.0), largest=3.0),
            Row(name="wide", module="vit", sizes=SIZES, errors=(0.0, 2e-7), largest=2.0),
            Row(name="deep", module="eva", sizes=SIZES, errors=(4e-5, 0.0), largest=2.5),
            Row(name="odd", module="vit", refused="has two heads"),
            Row(name="strange", module="vit", refused="has two heads"),
        ],
    ),
    "torchvision": Section(title="torchvision 0.1", rows=[Row(name="b", sizes=SIZES, errors=(0.0, 0.0), largest=1.0)]),
    "preprocessing": Section(
        title="Preprocessing",
        rows=[
            Pipeline(name="timm, squash", size=(224, 288), images=5, equal=5, error=8e-6),
            Pipeline(name="timm, center", size=(224, 224), images=5, equal=5, error=2e-5),
            Pipeline(name="other, tensors", size=(224, 224), images=5, equal=1, error=20.0, reason="rounds late"),
        ],
    ),
}


def test_the_summary_has_counts_largest_differences_and_exceptions():
    assert summary.summary(SECTIONS).splitlines() == [
        "| library | networks | load | equal in every bit | largest difference | largest logit there |",
        "| --- | --- | --- | --- | --- | --- |",
        "| timm 1.0, `vit` | 4 | 2 | 1 | 2e-07 | 2.0 |",
        "| timm 1.0, `eva` | 1 | 1 | 0 | 4e-05 | 2.5 |",
        "| torchvision 0.1 | 1 | 1 | 1 | 0 |  |",
        "",
        "Networks that are refused:",
        "",
        "- `odd`; `strange`: two heads.",
        "",
        "| preprocessing of | pipelines | equal in every image | largest difference of these, 8-bit steps |",
        "| --- | --- | --- | --- |",
        "| timm | 2 | 2 | 2e-05 |",
        "| other | 1 | 0 | 0 |",
        "",
        "Pipelines that differ, with the largest difference in 8-bit steps:",
        "",
        "- other, tensors (1 of 5 equal, difference 20): rounds late.",
    ]


def test_the_committed_summary_is_that_of_the_committed_record():
    page = summary.PAGE.read_text()
    assert f"<!-- parity -->\n{summary.summary(record.read())}\n<!-- /parity -->" in page
