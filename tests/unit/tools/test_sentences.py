"""tests/benchmarks/sentences.py: which rows the front page shows."""

from tests.benchmarks import sentences


def row(server, rate, graph="plain export, fp32"):
    return {
        "server": server,
        "graph": graph,
        "images/s (quartiles)": f"{rate} (1.0 to 99.0)",
        "p50 / p99 at 10 requests/s, ms": "1 / 2",
        "CPU ms per image": 50,
    }


def test_the_front_page_shows_the_two_fastest_other_servers_each_by_its_fastest_row(monkeypatch):
    rows = [
        row("vit-serve", 20.0, "vit-serve, fp32"),
        row("One", 17.0),
        row("Two", 18.0),
        row("Two, batched", 19.0),
        row("Three", 16.0),
        row("Two, batched", 30.0, "plain export, bf16"),
    ]
    monkeypatch.setattr(sentences, "rows_of", lambda name: rows)
    shown = [line.split(" | ")[:2] for line in sentences.figures().splitlines()[2:]]
    assert shown == [
        ["| vit-serve; fp32", "20.0"],
        ["| Two, batched; plain export, fp32", "19.0"],
        ["| One; plain export, fp32", "17.0"],
        ["| Two, batched; plain export, bf16", "30.0"],
    ]
