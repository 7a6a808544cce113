"""The record in a page: counts, the largest differences, and the exceptions by name."""

import re
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from lab.benchmarks.rounds import table
from lab.parity.comparison import Pipeline
from lab.parity.record import PIPELINES, Section

PAGE = Path("lab/parity/README.md")
Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


def blocks(sections: Mapping[str, Section]) -> dict[str, str]:
    """Markdown by the name of its block: a table of networks, those that are refused, and pipelines with those that
    differ.
    """
    libraries = [section for peer, section in sections.items() if peer != PIPELINES]
    refused = [row for section in libraries for row in section.rows if row.refused]
    reasons = ((row.refused.removeprefix("has "), f"`{row.name}`") for row in refused)
    compared = sections[PIPELINES].rows
    differ = ((row.reason, differing(row)) for row in compared if row.reason)
    apart = exceptions("Pipelines that differ, with the largest difference in 8-bit steps:", differ)
    return {
        "parity": networks(libraries),
        "refused": exceptions("Networks that are refused:", reasons),
        "pipelines": "\n\n".join(filter(None, (pipelines(compared), apart))),
    }


def networks(libraries: Iterable[Section]) -> str:
    """One row per module of a library, or per library that has no modules."""
    lines = []
    for library in libraries:
        for module, rows in grouped((row.module, row) for row in library.rows).items():
            loaded = [row for row in rows if not row.refused]
            worst = max(loaded, key=lambda row: max(row.errors))
            lines.append({
                "library": f"{library.title}, `{module}`" if module else library.title,
                "networks": len(rows),
                "load": len(loaded),
                "equal in every bit": sum(not any(row.errors) for row in loaded),
                "largest difference": shown(max(worst.errors)),
                "tokens, relative": shown(max(row.tokens or 0.0 for row in loaded)),
                "receipts, relative": shown(max(row.receipt or 0.0 for row in loaded)),
            })  # fmt: skip
    return table(lines)


def pipelines(rows: Iterable[Pipeline]) -> str:
    """One row per library, whose name begins those of its pipelines."""
    lines = []
    for library, compared in grouped((row.name.partition(",")[0], row) for row in rows).items():
        equal = [row.error for row in compared if row.equal == row.images]
        lines.append({
            "preprocessing of": library,
            "pipelines": len(compared),
            "equal in every image": len(equal),
            "largest difference of these, 8-bit steps": shown(max(equal, default=0.0)),
        })  # fmt: skip
    return table(lines)


def differing(row: Pipeline) -> str:
    return f"{row.name} ({row.equal} of {row.images} equal, difference {row.error:.0f})"


def exceptions(head: str, pairs: Iterable[tuple[str, str]]) -> str:
    """A list of reasons and what each is the reason of; empty without pairs."""
    lines = [f"- {'; '.join(names)}: {reason}." for reason, names in grouped(pairs).items()]
    return "\n".join([head, "", *lines]) if lines else ""


def grouped(pairs: Iterable[tuple[Key, Item]]) -> dict[Key, list[Item]]:
    """In the order in which keys come first."""
    groups: dict[Key, list[Item]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return groups


def shown(error: float) -> str:
    return f"{error:.0e}" if error else "0"


def write(sections: Mapping[str, Section]) -> None:
    """Put each block between the comments that name it."""
    page = PAGE.read_text()
    for name, text in blocks(sections).items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        page = pattern.sub(lambda match, text=text: f"{match[1]}{text}\n{match[2]}", page)
    PAGE.write_text(page)
