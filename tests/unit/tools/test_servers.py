"""lab/benchmarks/servers: what the comparison makes of what it measures, and that it can go on."""

from contextlib import nullcontext

import pytest

from lab.benchmarks.servers import comparison
from lab.benchmarks.servers.comparison import Comparison, Finding, equal_table, servers_table
from lab.benchmarks.servers.contenders import PLAIN_GRAPH, Contender
from lab.benchmarks.servers.stage import check


def finding(server: str, graph: str, rates: list[float], *groups: str) -> Finding:
    closed = [{"images_per_s": rate, "cpu_s": 1.0, "images": 10, "others": 0.0} for rate in rates]
    of = Contender(server=server, graph=graph, runtime="ONNX Runtime", groups=groups or ("fp32",), tries=())
    return Finding(contender=of, closed=closed, own=([1.0, 2.0], 0), common=([1.0, 2.0], 1))


@pytest.mark.parametrize(
    ("labels", "exact", "good"),
    [
        ((1, 2, 3, 4, 5), True, True),
        ((2, 1, 3, 4, 5), True, False),
        ((2, 1, 3, 8, 9), False, True),
        ((1, 2, 7, 8, 9), False, False),
    ],
)
def test_an_answer_needs_the_labels_of_the_weights(labels, exact, good):
    answer = "".join(f'{{"label": "class {label}", "score": 0.1}}' for label in labels).encode()
    refused = pytest.raises(RuntimeError, match="the likeliest labels are class 1")
    with nullcontext() if good else refused:
        check(answer, [f"class {label}" for label in (1, 2, 3, 4, 5)], exact=exact)


def compared(group: str, findings: list[Finding]) -> Comparison:
    return Comparison(group=group, requests=1000, tries=[], findings=findings, left_out={})


def test_each_server_has_one_row_and_ratios_are_those_of_its_own_group():
    """And of its own round. The machine was half as fast when the second group was measured."""
    base = ("vit-serve", "vit-serve, fp32")
    lit = finding("LitServe", PLAIN_GRAPH, [5, 10, 20], "fp32", "equal")
    fp32 = [finding(*base, [10, 20, 40], "fp32", "int8"), lit]
    int8 = [finding(*base, [10, 10], "fp32", "int8"), finding("vit-serve", "vit-serve, int8", [30, 30], "int8")]
    equal = [finding(*base, [20, 20], "fp32", "equal"), finding("LitServe", PLAIN_GRAPH, [1, 1], "fp32", "equal")]
    rows = servers_table([compared("fp32", fp32), compared("int8", int8), compared("equal", equal)])
    assert [(row["server"], row["graph"], row["ratio (quartiles)"]) for row in rows] == [
        ("vit-serve", "vit-serve, fp32", "1.00 (1.00 to 1.00)"),
        ("vit-serve", "vit-serve, int8", "3.00 (3.00 to 3.00)"),
        ("LitServe", PLAIN_GRAPH, "0.50 (0.50 to 0.50)"),
    ]
    assert rows[2]["images/s (quartiles)"] == "10.0 (7.5 to 15.0)"
    assert rows[2]["failed"] == 1


def test_with_equal_graphs_ratios_refer_to_this_server_with_that_graph():
    findings = [
        finding("vit-serve", "vit-serve, fp32", [20, 20]),
        finding("vit-serve", PLAIN_GRAPH, [10, 10]),
        finding("LitServe", PLAIN_GRAPH, [5, 5]),
        finding("LitServe", "vit-serve, fp32", [10, 10]),
    ]
    rows = equal_table([compared("fp32", findings[::-1]), compared("equal", findings)])
    assert [(row["graph"], row["server"], row["ratio (quartiles)"][:4]) for row in rows] == [
        ("vit-serve, fp32, in ONNX Runtime", "vit-serve", "1.00"),
        ("vit-serve, fp32, in ONNX Runtime", "LitServe", "0.50"),
        (f"{PLAIN_GRAPH}, in ONNX Runtime", "vit-serve", "1.00"),
        (f"{PLAIN_GRAPH}, in ONNX Runtime", "LitServe", "0.50"),
    ]


def test_work_goes_on_only_in_the_same_state_of_the_code(tmp_path, monkeypatch):
    about = {"commit": "a", "uncommitted": []}
    monkeypatch.setattr(comparison, "WORK", tmp_path / "servers.work")
    monkeypatch.setattr(comparison, "head", lambda: about)
    monkeypatch.setattr(comparison, "write_weights", lambda folder: (folder / "labels.txt").write_text("class 1"))
    left = comparison.work_folder(1000) / "journal.jsonl"
    for change, goes_on in ({}, True), ({"commit": "b"}, False), ({"uncommitted": ["app/main.py"]}, False):
        left.write_text("")
        about |= change
        comparison.work_folder(1000)
        assert left.exists() == goes_on
