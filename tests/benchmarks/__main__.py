"""`python -m tests.benchmarks [graphs] [serving] [servers] [memory] ...`: measure, and write the JSON and the tables.

Timings on a shared machine are noisy, so variants run interleaved, and tables have medians and ratios.
"""

import json
import re
import sys
from pathlib import Path

from tests.benchmarks import (
    arrangements,
    cost,
    doors,
    drawing,
    gears,
    hop,
    memory,
    neighbours,
    observation,
    overhead,
    precision,
    serving,
)
from tests.benchmarks.decoding import comparison as decoding
from tests.benchmarks.maps import comparison as maps
from tests.benchmarks.runtimes import comparison as runtimes
from tests.benchmarks.servers import comparison as servers
from tests.benchmarks.training import comparison as training

BENCHMARKS = {
    "graphs": runtimes.measure,
    "serving": serving.measure,
    "gears": gears.measure,
    "shifts": gears.measure_shifts,
    "overhead": overhead.measure,
    "observation": observation.measure,
    "servers": servers.measure,
    "decoding": decoding.measure,
    "hop": hop.measure,
    "doors": doors.measure,
    "cost": cost.measure,
    "arrangements": arrangements.measure,
    "memory": memory.measure,
    "drawing": drawing.measure,
    "maps": maps.measure,
    "precision": precision.measure,
    "neighbours": neighbours.measure,
    "training": training.measure,
}
FOLDER = Path(__file__).parent
PAGES = sorted((FOLDER.parents[1] / "docs").glob("*.md"))


def main() -> None:
    for name in sys.argv[1:] or BENCHMARKS:
        publish(name, BENCHMARKS[name](), FOLDER)


def publish(name: str, rows: list[dict[str, str | float]], folder: Path) -> None:
    """Write NAME.json into `folder`, print the table, and write it into the page that has a place for it."""
    (folder / f"{name}.json").write_text(json.dumps(rows, indent=2) + "\n")
    print(table(rows))
    write_table(name, rows)


def table(rows: list[dict[str, str | float]]) -> str:
    """The rows as Markdown."""
    lines = [" | ".join(rows[0]), " | ".join("---" for _ in rows[0])]
    lines += [" | ".join(str(value) for value in row.values()) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def write_table(name: str, rows: list[dict[str, str | float]]) -> None:
    """Replace the table between the comments that name it, in every page that has them."""
    pattern = re.compile(f"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    pages = [page for page in PAGES if pattern.search(page.read_text())]
    if not pages:
        raise SystemExit(f"no page has a place for the table {name}")
    for page in pages:
        page.write_text(pattern.sub(lambda match: f"{match[1]}{table(rows)}\n{match[2]}", page.read_text()))


if __name__ == "__main__":
    main()
