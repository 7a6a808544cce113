"""Which servers lead in the comparison: the rows of the front page, and where others are ahead of this project."""

from collections.abc import Callable

from lab.benchmarks.record import Row, Rows, number, rows_of

OURS = "vit-serve"
AMX, VNNI, AVX2 = "servers_amx_int8", "servers_avx512_vnni", "servers_avx2"  # records of the comparison, by processor
PRECISIONS = ("fp32", "bf16", "int8")
RATE, COMMON = "images/s (quartiles)", "p50 / p99 at 10 requests/s, ms"
COLUMNS: dict[str, Callable[[Row], float]] = {  # less is better
    "images/s": lambda row: -number(row[RATE]),
    "p50 at 10 requests/s": lambda row: number(row[COMMON]),
    "p99 at 10 requests/s": lambda row: number(str(row[COMMON]).split(" / ")[1]),
}


def fastest(record: str) -> Rows:
    """Of a comparison, this project's rows, and the two fastest others in each precision, each by its fastest row."""
    rows = sorted(rows_of(record), key=COLUMNS["images/s"])
    chosen = [row for row in rows_of(record) if is_ours(row)]
    for precision in PRECISIONS:
        others: dict[str, Row] = {}
        for row in rows:
            if not is_ours(row) and precision_of(row) == precision:
                others.setdefault(str(row["server"]).split(",")[0], row)
        chosen += list(others.values())[:2]
    return [
        {
            "server": f"{row['server']}; {str(row['graph']).removeprefix('vit-serve, ')}",
            "images/s": number(row[RATE]),
            COMMON: row[COMMON],
        }
        for row in chosen
    ]


def ahead(record: str) -> str:
    """The servers that are ahead of this one with labels in a comparison, by precision and column."""
    labels = [row for row in rows_of(record) if row["server"] == OURS or not is_ours(row)]
    places = []
    for ours in filter(is_ours, labels):
        others = [row for row in labels if not is_ours(row) and precision_of(row) == precision_of(ours)]
        for name, figure in COLUMNS.items():
            if better := [str(row["server"]) for row in others if figure(row) < figure(ours)]:
                places.append(f"{precision_of(ours)} {name} ({' and '.join(better)})")
    if not places:
        return f"No other server is ahead in {', '.join(COLUMNS)}."
    return f"Others are ahead in {'; '.join(places)}."


def is_ours(row: Row) -> bool:
    return str(row["server"]).startswith(OURS)


def precision_of(row: Row) -> str:
    return next((precision for precision in PRECISIONS if precision in str(row["graph"])), "fp32")
