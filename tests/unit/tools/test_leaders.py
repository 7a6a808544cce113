"""lab/benchmarks/leaders.py: which servers the pages name."""

from lab.benchmarks import leaders

RATE, COMMON = leaders.RATE, leaders.COMMON


def row(server, rate, graph="plain export, fp32", common="10 / 20"):
    return {"server": server, "graph": graph, RATE: f"{rate} (1.0 to 99.0)", COMMON: common}


def test_the_front_page_shows_the_two_fastest_other_servers_each_by_its_fastest_row(monkeypatch):
    others = {"One": 17.0, "Two": 18.0, "Two, batched": 19.0, "Three": 16.0}
    rows = [row("vit-serve", 20.0, "vit-serve, fp32"), row("Two, batched", 30.0, "plain export, bf16")]
    rows += [row(server, rate) for server, rate in others.items()]
    monkeypatch.setattr(leaders, "rows_of", lambda name: rows)
    assert [(each["server"], each["images/s"]) for each in leaders.fastest("servers")] == [
        ("vit-serve; fp32", 20.0),
        ("Two, batched; plain export, fp32", 19.0),
        ("One; plain export, fp32", 17.0),
        ("Two, batched; plain export, bf16", 30.0),
    ]


def test_others_are_ahead_where_their_figure_with_labels_is_better(monkeypatch):
    maps = row("vit-serve, labels and maps", 15.0, "vit-serve, fp32")
    rows = [row("vit-serve", 20.0, "vit-serve, fp32"), maps, row("One", 19.0), row("Two", 90.0, "NNCF, int8")]
    monkeypatch.setattr(leaders, "rows_of", lambda name: rows)
    assert leaders.ahead() == "No other server is ahead in any of these columns."
    rows += [row("Three", 21.0, common="9 / 21"), row("Four", 22.0)]
    assert leaders.ahead() == "Others are ahead in fp32 images/s (Three and Four); fp32 p50 at 10 requests/s (Three)."
