"""What pages say of the benchmarks in words: every figure in a sentence is that of the recorded JSON."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.page import table
from tests.benchmarks.record import Rows, read_record

FOLDER = Path(__file__).parent
LOADS = FOLDER.parent / "load"
OURS = "vit-serve"
PRECISIONS = ("fp32", "bf16", "int8")
OPENVINO_IN = {
    "fp32": "OpenVINO, fp32",
    "bf16": "OpenVINO, bf16",
    "int8": "OpenVINO, int8 (NNCF), rest in bf16",
}  # rows of the graphs
RATE, COMMON = "images/s (quartiles)", "p50 / p99 at 10 requests/s, ms"


class Server(NamedTuple):
    """A row of the servers, as numbers."""

    name: str
    precision: str
    images_per_s: float
    own: tuple[float, float]  # p50 and p99 at 80 % of its capacity, ms
    common: tuple[float, float]  # p50 and p99 at 10 requests/s, ms


COLUMNS: dict[str, Callable[[Server], float]] = {  # less is better
    "images a second": lambda server: -server.images_per_s,
    "p50 at 10 requests a second": lambda server: server.common[0],
    "p99 at 10 requests a second": lambda server: server.common[1],
    "p50 at 80 % of its own capacity": lambda server: server.own[0],
    "p99 at 80 % of its own capacity": lambda server: server.own[1],
}


def figures() -> str:
    """The table of the front page: this project's rows, and the two fastest others in each precision.

    A server that has several rows in one precision is shown by the fastest.
    """
    rows = sorted(rows_of("servers"), key=lambda row: -number(row[RATE]))
    chosen = [row for row in rows_of("servers") if is_ours(row)]
    for precision in PRECISIONS:
        fastest: dict[str, dict[str, str | float]] = {}
        for row in rows:
            if not is_ours(row) and precision_of(row) == precision:
                fastest.setdefault(str(row["server"]).split(",")[0], row)
        chosen += list(fastest.values())[:2]
    return table(
        [
            {
                "server": f"{row['server']}; {str(row['graph']).removeprefix('vit-serve, ')}",
                "images/s": number(row[RATE]),
                COMMON: row[COMMON],
            }
            for row in chosen
        ]
    )


def throughput_and_latency() -> str:
    lines = []
    for precision in precisions():
        mine, *others = servers(precision)
        best, *rest = sorted(others, key=COLUMNS["images a second"])
        slower = f", and {mine.images_per_s / rest[-1].images_per_s:.2f} times as many as the slowest" if rest else ""
        quick, steady = min(others, key=lambda o: o.common[0]), min(others, key=lambda o: o.common[1])
        lines.append(
            f"- **{precision}.** This server answers {mine.images_per_s / best.images_per_s:.2f} times as many images "
            f"as the fastest other ({best.name}){slower}. At 10 requests a second its p50 is {mine.common[0]:.0f} ms "
            f"and its p99 {mine.common[1]:.0f} ms. The lowest of the others are {quick.common[0]:.0f} ms "
            f"({quick.name}) and {steady.common[1]:.0f} ms ({steady.name})."
        )
    best = min(servers("fp32")[1:], key=COLUMNS["images a second"])
    lines += [
        f"- In {precision} it answers {servers(precision)[0].images_per_s / best.images_per_s:.2f} times as many "
        f"images as the fastest other in fp32 ({best.name})."
        for precision in precisions()
        if precision != "fp32"
    ]
    return "\n".join(lines)


def ahead() -> str:
    """Where others are ahead, by the same figures."""
    found = []
    for precision in precisions():
        mine, *others = servers(precision)
        for what, of in COLUMNS.items():
            if better := [other for other in others if of(other) < of(mine)]:
                cells = ", ".join(f"{other.name} {abs(of(other)):g}" for other in better)
                found.append(f"{what} in {precision} ({cells}; this server {abs(of(mine)):g})")
    return (
        f"Others are ahead here: {'; '.join(found)}." if found else "No other server is ahead in any of these columns."
    )


def percentiles() -> str:
    head = read_record(FOLDER / "servers.json").head
    left_out = head["left out"]
    assert isinstance(left_out, dict)
    missing = f" Left out, because they failed: {'; '.join(left_out)}." if left_out else ""
    return f"{head['requests behind a percentile']} requests are behind every p50 and p99.{missing}"


def equal_graphs() -> str:
    """The fastest other with each graph."""
    rows, lines = rows_of("servers_equal"), []
    for graph in dict.fromkeys(row["graph"] for row in rows):
        best = max((row for row in rows if row["graph"] == graph and not is_ours(row)), key=lambda r: number(r[RATE]))
        lines.append(
            f"- {graph}: {best['server']} is the fastest other, with {number(best['ratio (quartiles)']):.2f} times the "
            "images of this server."
        )
    return "\n".join(lines)


def graphs() -> str:
    """How the graphs compare with the plain export and with OpenVINO."""
    rows = {str(row["runtime"]): row for row in rows_of("graphs")}

    def ratios(runtime: str, *batches: int) -> list[float]:
        """To the plain export."""
        of_batch = tuple(f"batch {batch}: ms (ratio)" for batch in batches)
        return [
            float(str(cell).split("(")[1].rstrip(")"))
            for name, cell in rows[runtime].items()
            if name.endswith(of_batch)
        ]

    labels, maps = "vit-serve, labels, fp32", "vit-serve, labels and every map, fp32"
    lines = [
        f"- Labels take {span(ratios(labels, 1, 8))} of the plain export's time, and {span(ratios(maps, 1, 8))} with "
        "every map of every layer."
    ]
    for precision, of_openvino in OPENVINO_IN.items():
        ours = f"vit-serve, labels, {precision}"
        if ours not in rows:
            continue
        if precision != "fp32":
            lines.append(
                f"- In {precision}, labels take {span(ratios(ours, 8))} of it at batch 8 and {span(ratios(ours, 1))} "
                "at batch 1."
            )
        if of_openvino in rows:
            large, small = (
                [a / b for a, b in zip(ratios(ours, batch), ratios(of_openvino, batch), strict=True)]
                for batch in (8, 1)
            )
            lines.append(
                f"- Of the time of the plain export in OpenVINO, labels in {precision} take {span(large)} at batch 8 "
                f"and {span(small)} at batch 1."
            )
    return "\n".join(lines)


def serving() -> str:
    """The served rate beside raw loops."""
    return "\n".join(
        f"- {row['model and answer']}: {number(row['served / best raw']):.2f} of the best raw arrangement of its own "
        f"graph, {number(row['served / best raw, plain export']):.2f} of that of the plain export."
        for row in rows_of("serving")
    )


def overload() -> str:
    (five,) = (row for row in rows_of("overload", LOADS) if number(row["offered / peak"]) == 5)
    share, refused = five["answered / peak (quartiles)"], str(five["refused, p50 / p99, ms"]).split(" / ")[1]
    return (
        f"At five times the peak the service answers {number(share):.2f} of what it answers at its peak, and 99 % of "
        f"the refusals arrive within {refused} ms."
    )


def servers(precision: str) -> list[Server]:
    """Those of labels in this precision, this project's first."""
    rows = [row for row in rows_of("servers") if "maps" not in str(row["server"])]
    found = [
        Server(
            str(row["server"]),
            precision_of(row),
            number(row[RATE]),
            pair(row["p50 / p99 at 80% of its own capacity, ms"]),
            pair(row[COMMON]),
        )
        for row in sorted(rows, key=is_ours, reverse=True)
    ]
    return [server for server in found if server.precision == precision]


def rows_of(name: str, folder: Path = FOLDER) -> Rows:
    return read_record(folder / f"{name}.json").rows


def is_ours(row: dict[str, str | float]) -> bool:
    return str(row["server"]).startswith(OURS)


def precision_of(row: dict[str, str | float]) -> str:
    return next((precision for precision in PRECISIONS if precision in str(row["graph"])), "fp32")


def precisions() -> list[str]:
    """Those of this project's rows."""
    return list(dict.fromkeys(precision_of(row) for row in rows_of("servers") if is_ours(row)))


def number(cell: str | float) -> float:
    """The first number of a cell."""
    return float(str(cell).split()[0])


def pair(cell: str | float) -> tuple[float, float]:
    """Those of `p50 / p99`."""
    first, second = map(float, str(cell).split(" / "))
    return first, second


def span(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


BLOCKS: dict[str, Callable[[], str]] = {
    "figures": figures,
    "where others are ahead": ahead,
    "servers in words": throughput_and_latency,
    "requests behind percentiles": percentiles,
    "equal graphs in words": equal_graphs,
    "graphs in words": graphs,
    "serving in words": serving,
    "overload in words": overload,
}
