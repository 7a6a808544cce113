"""Tables and sentences in the pages, between the comments that name them."""

import re
from pathlib import Path

from tests.benchmarks.record import ROOT, Rows

README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").glob("*.md"))


def table(rows: Rows) -> str:
    """The rows as Markdown."""
    lines = [" | ".join(rows[0]), " | ".join("---" for _ in rows[0])]
    lines += [" | ".join(str(value) for value in row.values()) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def write_block(name: str, text: str, pages: list[Path]) -> bool:
    """Replace what stands between the comments that name a block, in every page that has them. Whether one has."""
    pattern = re.compile(f"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    found = [page for page in pages if pattern.search(page.read_text())]
    for page in found:
        page.write_text(pattern.sub(lambda match: f"{match[1]}{text}\n{match[2]}", page.read_text()))
    return bool(found)
