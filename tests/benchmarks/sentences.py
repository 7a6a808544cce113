"""What pages say of the benchmarks in words: every figure in a sentence is that of the recorded JSON."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.page import table
from tests.benchmarks.record import Rows, read_record

FOLDER = Path(__file__).parent
LOADS = FOLDER.parent / "load"
OURS = "vit-serve"
RATE, CPU = "images/s (quartiles)", "CPU ms per image"
RATIO, OWN, COMMON = (
    "ratio (quartiles)",
    "p50 / p99 at 80% of its own capacity, ms",
    "p50 / p99 at 10 requests/s, ms",
)


class Measured(NamedTuple):
    """A row of the servers, as numbers."""

    name: str
    graph: str
    rate: float
    ratio: float
    own: tuple[float, float]  # p50 and p99
    common: tuple[float, float]


def number(cell: str | float) -> float:
    """The first number of a cell."""
    return float(str(cell).split()[0])


def pair(cell: str | float) -> tuple[float, float]:
    """Those of `p50 / p99`."""
    first, second = map(float, str(cell).split(" / "))
    return first, second


def servers() -> tuple[list[Measured], list[Measured]]:
    """This project's rows, and those of the others, the fastest first."""
    rows = [
        Measured(
            str(row["server"]),
            str(row["graph"]),
            number(row[RATE]),
            number(row[RATIO]),
            pair(row[OWN]),
            pair(row[COMMON]),
        )
        for row in _rows(FOLDER / "servers.json")
    ]
    ours = [row for row in rows if row.name.startswith(OURS)]
    return ours, sorted((row for row in rows if row not in ours), key=lambda row: -row.rate)


def figures() -> str:
    """The table of the front page: this project's rows and the two fastest others."""
    rows = _rows(FOLDER / "servers.json")
    ours = [row for row in rows if str(row["server"]).startswith(OURS)]
    others = sorted((row for row in rows if row not in ours), key=lambda row: -number(row[RATE]))[:2]
    return table(
        [
            {
                "server": f"{row['server']}; {row['graph'].removeprefix('vit-serve, ')}",  # type: ignore[union-attr]  # a name
                "images/s": number(row[RATE]),
                "p50 / p99 at 10 requests/s, ms": row[COMMON],
                CPU: row[CPU],
            }
            for row in [*ours, *others]
        ]
    )


def throughput() -> str:
    (fp32, _, int8, *_), others = servers()
    in_fp32 = [row for row in others if "int8" not in row.graph]
    in_int8 = [row for row in others if row not in in_fp32]
    best, *rest = in_fp32
    lines = [
        f"- **Throughput.** In fp32 this server answers {fp32.rate / best.rate:.2f} times as many images as the fastest "
        f"other ({best.name}), and {fp32.rate / rest[0].rate:.2f} to {fp32.rate / rest[-1].rate:.2f} times as many as "
        f"the rest. In int8 it answers {int8.rate / best.rate:.2f} times as many as that one in fp32"
        + "".join(f", and {int8.rate / row.rate:.2f} times as many as {row.name} in int8" for row in in_int8)
        + "."
    ]
    return "\n".join([*lines, latency("- **Latency.** At 10 requests a second", "common", fp32, in_fp32), ahead()])


def latency(start: str, load: str, mine: Measured, others: list[Measured]) -> str:
    (p50, p99), at_p50, at_p99 = (
        getattr(mine, load),
        min(others, key=lambda row: getattr(row, load)[0]),
        min(others, key=lambda row: getattr(row, load)[1]),
    )
    return (
        f"{start} its p50 in fp32 is {p50:.0f} ms and its p99 {p99:.0f} ms. The lowest of the others in fp32 are "
        f"{getattr(at_p50, load)[0]:.0f} ms ({at_p50.name}) and {getattr(at_p99, load)[1]:.0f} ms ({at_p99.name})."
    )


def ahead() -> str:
    """Where others are ahead, by the same figures."""
    (fp32, _, int8, *_), others = servers()
    found = []
    for mine, same in (
        (fp32, [row for row in others if "int8" not in row.graph]),
        (int8, [row for row in others if "int8" in row.graph]),
    ):
        precision = mine.graph.removeprefix("vit-serve, ")
        for what, of in (
            ("images a second", lambda row: -row.rate),
            ("p50 at 10 requests a second", lambda row: row.common[0]),
            ("p99 at 10 requests a second", lambda row: row.common[1]),
            ("p50 at 80 % of its own capacity", lambda row: row.own[0]),
            ("p99 at 80 % of its own capacity", lambda row: row.own[1]),
        ):
            better = [row for row in same if of(row) < of(mine)]  # type: ignore[no-untyped-call]
            if better:
                cells = ", ".join(f"{row.name} {abs(of(row)):g}" for row in better)  # type: ignore[no-untyped-call]
                found.append(f"{what} in {precision} ({cells}; this server {abs(of(mine)):g})")  # type: ignore[no-untyped-call]
    if not found:
        return "- **Where it is not ahead.** In none of these columns."
    return "- **Where others are ahead.** " + "; ".join(found)[0].upper() + "; ".join(found)[1:] + "."


def conditions() -> str:
    head = read_record(FOLDER / "servers.json").head or {}
    left_out = head.get("left out") or {}
    assert isinstance(left_out, dict)
    missing = f" Left out, because they failed: {', '.join(left_out)}." if left_out else ""
    return f"At least {head.get('requests behind a percentile')} requests are behind every p50 and p99.{missing}"


def equal() -> str:
    """With the same graph, how the fastest other compares."""
    rows = _rows(FOLDER / "servers_equal.json")
    lines = []
    for graph in dict.fromkeys(str(row["graph"]) for row in rows):
        others = [row for row in rows if row["graph"] == graph and row["server"] != OURS]
        best = max(others, key=lambda row: number(row[RATE]))
        lines.append(
            f"- {graph}: the fastest other, {best['server']}, answers {number(best[RATIO]):.2f} times as many."
        )
    return "\n".join(lines)


def graphs() -> str:
    """How the graphs compare with the plain export and with OpenVINO, in ratios to the plain export."""
    rows = {str(row["runtime"]): row for row in _rows(FOLDER / "graphs.json")}

    def ratios(runtime: str, batch: int) -> list[float]:
        return [
            float(str(cell).split("(")[1].rstrip(")"))
            for name, cell in rows[runtime].items()
            if f"batch {batch}:" in name
        ]

    def span(runtime: str, *batches: int) -> str:
        of_all = [ratio for batch in batches for ratio in ratios(runtime, batch)]
        return f"{min(of_all):.2f} to {max(of_all):.2f}"

    def against(ours: str, theirs: str, batch: int) -> str:
        of_all = [a / b for a, b in zip(ratios(ours, batch), ratios(theirs, batch), strict=True)]
        return f"{min(of_all):.2f} to {max(of_all):.2f}"

    labels, maps = "vit-serve, labels, fp32", "vit-serve, labels and every map, fp32"
    int8, openvino = "vit-serve, labels, int8", "OpenVINO, int8 (NNCF), rest in bf16"
    lines = [
        f"- Labels take {span(labels, 1, 8)} of the plain export's time, and {span(maps, 1, 8)} with every map of every "
        "layer.",
        f"- In int8, labels take {span(int8, 8)} of it at batch 8 and {span(int8, 1)} at batch 1.",
    ]
    if openvino in rows:
        lines.append(
            f"- Against OpenVINO's time, labels take {against(labels, 'OpenVINO, fp32', 8)} of it in fp32 and "
            f"{against(int8, openvino, 8)} in int8 at batch 8, and {against(labels, 'OpenVINO, fp32', 1)} and "
            f"{against(int8, openvino, 1)} at batch 1. NNCF fixes the scales of activations at export, from calibration "
            "images; this project finds them at run time."
        )
    return "\n".join(lines)


def served() -> str:
    """The served rate beside raw loops."""
    lines = []
    for row in _rows(FOLDER / "serving.json"):
        lines.append(
            f"- {row['model and answer']}: {number(row['served / best raw']):.2f} of the best raw arrangement of its own "
            f"graph, {number(row['served / best raw, plain export']):.2f} of that of the plain export."
        )
    return "\n".join(lines)


def overload() -> str:
    rows = {number(row["offered / peak"]): row for row in _rows(LOADS / "overload.json")}
    five = rows[5.0]
    _, p99 = pair(five["refused, p50 / p99, ms"])
    return (
        f"At five times the peak the service answers {number(five['answered / peak (quartiles)']):.2f} of what it "
        f"answers at its peak, and 99 % of the refusals are sent within {p99:.0f} ms."
    )


def _rows(path: Path) -> Rows:
    return read_record(path).rows


BLOCKS: dict[str, Callable[[], str]] = {
    "figures": figures,
    "said of servers": throughput,
    "said of percentiles": conditions,
    "said of equal graphs": equal,
    "said of graphs": graphs,
    "said of serving": served,
    "said of overload": overload,
    "where others are ahead": ahead,
}
