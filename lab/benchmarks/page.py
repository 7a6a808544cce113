"""`python -m lab.benchmarks.page`: write the tables and figures of the pages from the records, without measuring."""

import re

from lab.benchmarks.figures import fill
from lab.benchmarks.leaders import AMX, AVX2, ahead, fastest
from lab.benchmarks.record import ROOT, Rows, read_record, record_paths, rows_of
from lab.benchmarks.rounds import table
from lab.benchmarks.sizing import sizing
from lab.gpu.tables import gpu_tables

README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"(<!-- ([\w -]+) -->\n).*?(<!-- /\2 -->)", re.DOTALL)


def of_first_fill() -> Rows:
    """The rows of what_if.json with the first fill; those with the others are in the record alone."""
    rows = rows_of("what_if")
    return [{name: row[name] for name in row if name != "fill"} for row in rows if row["fill"] == rows[0]["fill"]]


def blocks() -> dict[str, str]:
    """What stands between `<!-- NAME -->` and `<!-- /NAME -->` in the pages, by name."""
    tables = {name: table(read_record(path).rows) for name, path in record_paths().items()}
    return tables | {
        "figures": table(fastest(AMX)),
        "where others are ahead": ahead(AMX),
        "where others are ahead with AVX2": ahead(AVX2),
        "sizing": table(sizing()),
        "what_if": table(of_first_fill()),
        **{name: table(rows) for name, rows in gpu_tables().items()},
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
