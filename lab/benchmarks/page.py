"""`python -m lab.benchmarks.page`: write the tables and figures of the pages from the records, without measuring."""

import re
from statistics import fmean

from lab.benchmarks.figures import fill
from lab.benchmarks.leaders import AMX, AVX2, COMMON, RATE, VNNI, ahead, fastest
from lab.benchmarks.record import ROOT, Record, Rows, number, read_record, record_paths, rows_of
from lab.benchmarks.rounds import table
from lab.benchmarks.sizing import sizing
from lab.gpu.tables import gpu_tables

README = ROOT / "README.md"
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [*DOCS, *sorted((ROOT / "lab").glob("*/README.md"))]
WIDEST = {"amx": " with AMX", "avx512_bf16": " with AVX512-BF16", "avx512": " with AVX-512", "avx2": " with AVX2"}
QUARTILES = re.compile(r" \([\d.]+ to [\d.]+\)$")
COST = (
    "model", "side, pixels", "weights, MiB", "labels, ms at batch 1", "labels, images/s (batch)",
    "labels, peak MiB at batch 1 / 16", "labels and maps, images/s (batch)",
    "labels and maps, peak MiB at batch 1 / 16",
)  # fmt: skip
MEMORY = (
    "bundle", "bundle on disk, MiB", "second start, s", "resident when ready, MiB", "after 30 requests, MiB",
    "a second replica adds, MiB",
)  # fmt: skip
JUDGED = ("map", "insertion less deletion", "behind the first", "hottest patch on the object, %", "one of the five, %")
BLOCK = re.compile(r"(<!-- ([\w -]+) -->\n).*?(<!-- /\2 -->)", re.DOTALL)


def of_first_fill() -> Rows:
    """The rows of what_if.json with the first fill; those with the others are in the record alone."""
    rows = rows_of("what_if")
    return [{name: row[name] for name in row if name != "fill"} for row in rows if row["fill"] == rows[0]["fill"]]


def measured(record: Record) -> str:
    """When, on which processor, and at which commit, whose code measures it again."""
    name, _, instructions = str(record.head.get("processor", "processor not recorded (")).partition(" (")
    widest = next((called for flag, called in WIDEST.items() if flag in instructions), "")
    where = f"{name.replace('(R)', '').replace(' Processor', '')}{widest}"
    return f"*{str(record.head['date'])[:10]}, {where}, at {str(record.head['commit'])[:8]}*"


def judged(images: str) -> Rows:
    """What `export judge` says of one set of images. Other columns are in the record alone."""
    rows = [row for row in rows_of("real-judge") if str(row["images"]).endswith(images)]
    return [{name: row[name] for name in JUDGED} for row in rows]


def what_to_expect() -> Rows:
    """Of learning, the mean over seeds."""
    rows = rows_of("learning")
    kinds = [[row for row in rows if row["images"] == kind] for kind in dict.fromkeys(row["images"] for row in rows)]
    columns = {"probe, % right": 1, "fine-tuning, % right": 1, "probe, CPU s": None, "fine-tuning, CPU s": None}
    return [
        {name: of_kind[0][name] for name in ("images", "learned from / judged by")}
        | {name: round(fmean(number(row[name]) for row in of_kind), digits) for name, digits in columns.items()}
        for of_kind in kinds
    ]


def strange_images() -> Rows:
    """Of familiarity, how well it orders images and how many it turns away."""
    return [row for row in rows_of("real-unknown") if str(row[""]).startswith(("familiarity", "turned away"))]


def of_record(name: str, *columns: str) -> str:
    """Its table. Of some columns alone, cells have no quartiles."""
    rows: Rows = rows_of(name)
    if columns:
        names = {column: column.removesuffix(" (quartiles)") for column in columns}
        rows = [{name: QUARTILES.sub("", str(row[column])) for column, name in names.items()} for row in rows]
    return dated(name, rows)


def dated(name: str, rows: Rows) -> str:
    """A table, and below it when the record was measured that its rows are from."""
    return under(Record(read_record(record_paths()[name]).head, rows))


def under(record: Record) -> str:
    return f"{table(record.rows)}\n\n{measured(record)}"


def blocks() -> dict[str, str]:
    """What stands between `<!-- NAME -->` and `<!-- /NAME -->` in the pages, by name."""
    tables = {name: of_record(name) for name in record_paths() if name != "real-judge"}  # it is in three tables
    return tables | {
        "figures": table(fastest(AMX)),
        "servers": of_record(AMX, "server", "graph", RATE, COMMON),
        "cost": of_record("cost", *COST),
        "memory": of_record("memory", *MEMORY),
        "where others are ahead": ahead(AMX),
        "where others are ahead with VNNI": ahead(VNNI),
        "where others are ahead with AVX2": ahead(AVX2),
        "sizing": table(sizing()),
        **{f"judged {images}": dated("real-judge", judged(images)) for images in ("shapes", "photographs", "textiles")},
        "what to expect": dated("learning", what_to_expect()),
        "strange images": dated("real-unknown", strange_images()),
        "what_if": dated("what_if", of_first_fill()),
        **{name: under(record) for name, record in gpu_tables().items()},
    }


def written(text: str) -> str:
    """A page with every table and figure as its record has it; other blocks stay. Raises KeyError for other figures."""
    known = blocks()
    return fill(BLOCK.sub(lambda b: f"{b[1]}{known[b[2]]}\n{b[3]}" if b[2] in known else b[0], text))


def write_pages() -> None:
    for page in [README, *PAGES]:
        page.write_text(written(page.read_text()))


if __name__ == "__main__":
    write_pages()
