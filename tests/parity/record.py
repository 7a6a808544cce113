"""tests/parity/parity.json: what `make parity` found, one row per line."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from tests.parity.comparison import Pipeline, Row

RECORD = Path(__file__).with_name("parity.json")
PIPELINES = "preprocessing"  # the peer whose rows are pipelines; those of all others are networks
CRITERION = "rounding"  # what a comparison allows, which is no result


@dataclass(frozen=True, kw_only=True)
class Section:
    title: str  # name and version of the library
    rows: Sequence[Any]  # each a Row or a Pipeline


def read() -> dict[str, Section]:
    """By peer."""
    content = json.loads(RECORD.read_text())
    return {
        peer: Section(title=part["title"], rows=[_row(peer, values) for values in part["rows"]])
        for peer, part in content.items()
    }


def write(sections: Mapping[str, Section]) -> None:
    """Fields with their defaults are left out."""
    parts = []
    for peer, section in sections.items():
        rows = ",\n".join(json.dumps(_values(row), ensure_ascii=False) for row in section.rows)
        parts.append(f'"{peer}": {{"title": {json.dumps(section.title)}, "rows": [\n{rows}\n]}}')
    RECORD.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def _row(peer: str, values: dict[str, Any]) -> Row | Pipeline:
    if peer == PIPELINES:
        return Pipeline(**values | {"size": tuple(values["size"])})
    sizes = tuple((height, width) for height, width in values.get("sizes", ()))
    return Row(**values | {"sizes": sizes, "errors": tuple(values.get("errors", ()))})


def _values(row: Row | Pipeline) -> dict[str, Any]:
    values = {field.name: (getattr(row, field.name), field.default) for field in fields(row) if field.name != CRITERION}
    return {name: value for name, (value, default) in values.items() if default is MISSING or value != default}
