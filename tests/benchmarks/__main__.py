"""`python -m tests.benchmarks [graphs] [serving] [servers] [memory] [drawing] [maps]`: measure, write JSON and tables.

Timings on a shared machine are noisy: variants run interleaved, and medians and ratios are what to read.
"""

import json
import re
import sys
from pathlib import Path

from tests.benchmarks import drawing, graphs, maps, memory, serving
from tests.benchmarks.servers import comparison

BENCHMARKS = {
    "graphs": graphs.measure,
    "serving": serving.measure,
    "servers": comparison.measure,
    "memory": memory.measure,
    "drawing": drawing.measure,
    "maps": maps.measure,
}
FOLDER = Path(__file__).parent
README = FOLDER.parents[1] / "README.md"


def main() -> None:
    for name in sys.argv[1:] or BENCHMARKS:
        rows = BENCHMARKS[name]()
        (FOLDER / f"{name}.json").write_text(json.dumps(rows, indent=2) + "\n")
        print(table(rows))
        write_table(name, rows)


def table(rows: list[dict[str, str | float]]) -> str:
    """The rows as Markdown."""
    lines = [" | ".join(rows[0]), " | ".join("---" for _ in rows[0])]
    lines += [" | ".join(str(value) for value in row.values()) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def write_table(name: str, rows: list[dict[str, str | float]]) -> None:
    """Replace the README's table between the comments that name it."""
    pattern = re.compile(f"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
    text = README.read_text()
    if not pattern.search(text):
        raise SystemExit(f"README.md has no place for the table {name}")
    README.write_text(pattern.sub(lambda match: match[1] + table(rows) + match[2], text))


if __name__ == "__main__":
    main()
