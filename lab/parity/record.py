"""lab/parity/parity.json: what `make parity` found, one row per line."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from lab.parity.comparison import Pipeline, Row

RECORD = Path(__file__).with_name("parity.json")
PIPELINES = "preprocessing"  # the peer whose rows are pipelines; those of all others are networks
CRITERION = "rounding"  # what a comparison allows, which is not a result


@dataclass(frozen=True, kw_only=True)
class Section:
    title: str  # name and version of the library
    rows: Sequence[Any]  # each a Row or a Pipeline
    processor: str  # rounding is its own


def read() -> dict[str, Section]:
    """By peer."""
    sections = {}
    for peer, part in json.loads(RECORD.read_text()).items():
        kind = Pipeline if peer == PIPELINES else Row
        sections[peer] = Section(
            title=part["title"],
            rows=[kind(**values) for values in part["rows"]],
            processor=part.get("processor", "not recorded"),
        )
    return sections


def write(sections: Mapping[str, Section]) -> None:
    """Fields with their defaults are left out."""
    parts = []
    for peer, section in sections.items():
        rows = ",\n".join(json.dumps(_values(row), ensure_ascii=False) for row in section.rows)
        head = json.dumps({"title": section.title, "processor": section.processor})
        parts.append(f'"{peer}": {head[:-1]}, "rows": [\n{rows}\n]}}')
    RECORD.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def _values(row: Row | Pipeline) -> dict[str, Any]:
    values = {field: getattr(row, field.name) for field in fields(row) if field.name != CRITERION}
    return {field.name: value for field, value in values.items() if value != field.default}
