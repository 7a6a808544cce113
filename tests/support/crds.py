"""Whether KServe, KEDA and the Prometheus Operator take a resource."""

import json
from pathlib import Path
from typing import Any

import jsonschema

SCHEMAS = json.loads((Path(__file__).parents[1] / "golden/crds.json").read_text())


def check(resource: dict[str, Any]) -> None:
    """Raises jsonschema.ValidationError, also for a field that no manifest had when tests.golden.make_crds last ran."""
    jsonschema.validate(resource, SCHEMAS[resource["kind"]])
