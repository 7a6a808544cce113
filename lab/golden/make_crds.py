"""`python -m lab.golden.make_crds`: writes tests/golden/crds.json: what KServe, KEDA, Prometheus' Operator and gateways
accept.

The schemas are those of packages that are generated from the definitions of these projects: KServe's own SDK (with the
client of Kubernetes, whose types it uses), read without importing it, and cloudcoil's models. No package has that of a
route: httproute.json is by hand, after the definition of the Gateway API. Only fields that our manifests use are kept,
and every other field is refused: after a new field in a manifest, run this again.
"""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

SDKS = ("kserve==0.21.0", "kubernetes==36.0.2")
MODELS = ("cloudcoil-models-keda==2.16.1.0", "cloudcoil-models-prometheus-operator==0.80.1.0")
KSERVE = {"ServingRuntime": "v1alpha1", "InferenceService": "v1beta1"}
KSERVE_GROUP = "serving.kserve.io"  # KSERVE_GROUP of its SDK
CLOUDCOIL = {
    "ScaledObject": "keda.v1alpha1",
    "ServiceMonitor": "prometheus_operator.v1",
    "PrometheusRule": "prometheus_operator.v1",
}
FOLDER = Path("docker/kubernetes")
OUT = Path("tests/golden/crds.json")
KEPT = {"type", "enum", "const", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"}
SCALARS = {"str": "string", "int": "integer", "bool": "boolean", "float": "number"}
METADATA = {"type": "object"}  # Kubernetes' own
Schema = dict[str, Any]


def main() -> None:
    schemas = of_sdks() | of_models()
    kept = {kind: pruned(schema, [manifest(kind)], schema) for kind, schema in schemas.items()}
    kept["HTTPRoute"] = json.loads(Path(__file__).with_name("httproute.json").read_text())
    OUT.write_text(json.dumps(kept, indent=1) + "\n")


def manifest(kind: str) -> Any:
    documents = [d for file in FOLDER.rglob("*.yaml") for d in yaml.safe_load_all(file.read_text())]
    (manifest,) = (document for document in documents if document.get("kind") == kind)
    return manifest


def pruned(schema: Schema, values: list[Any], root: Schema) -> Schema:
    """`schema` without fields that no value at its place has. `root` has what its references name."""
    if reference := schema.get("$ref"):
        return pruned(root["$defs"][reference.rpartition("/")[2]], values, root)
    if options := [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]:
        kept = [pruned(option, values, root) for option in options]
        return kept[0] if len(kept) == 1 else {"anyOf": kept}
    out = {key: schema[key] for key in sorted(KEPT & schema.keys())}
    if fields := schema.get("properties"):
        used = {name for value in values if isinstance(value, dict) for name in value} | set(schema.get("required", ()))
        out |= {"additionalProperties": False, "required": schema.get("required", [])}
        out["properties"] = {
            name: METADATA if name == "metadata" and schema is root else
            pruned(field, [value[name] for value in values if name in value], root)
            for name, field in fields.items() if name in used
        }  # fmt: skip
    elif isinstance(others := schema.get("additionalProperties"), dict):
        every = [item for value in values if isinstance(value, dict) for item in value.values()]
        out["additionalProperties"] = pruned(others, every, root)
    if items := schema.get("items"):
        every = [item for value in values if isinstance(value, list) for item in value]
        out["items"] = pruned(items, every, root)
    return out


def of_sdks() -> dict[str, Schema]:
    with TemporaryDirectory() as place:
        uv("pip", "install", "--quiet", "--no-deps", "--target", place, *SDKS)
        folders = [Path(place, package) for package in ("kserve/models", "kubernetes/client/models")]
        definitions = {
            node.name: of_class(node)
            for folder in folders
            for file in folder.glob("*.py")
            for node in ast.parse(file.read_text()).body
            if isinstance(node, ast.ClassDef)
        }
    kserve = {kind: definitions[f"V{version[1:]}{kind}"] | {"$defs": definitions} for kind, version in KSERVE.items()}
    for kind, version in KSERVE.items():  # the SDK takes any text for these two
        kserve[kind]["properties"] |= {"apiVersion": {"const": f"{KSERVE_GROUP}/{version}"}, "kind": {"const": kind}}
    return kserve


def of_class(node: ast.ClassDef) -> Schema:
    """The schema of one class that OpenAPI Generator has written."""
    tables = {
        target.id: ast.literal_eval(statement.value)
        for statement in node.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    if not tables.get("openapi_types"):
        return {}
    refused = re.findall(r"Invalid value for `(\w+)`, must not be `None`", ast.unparse(node))
    names = tables["attribute_map"]
    fields = {names[name]: of_type(kind) for name, kind in tables["openapi_types"].items()}
    return {"type": "object", "properties": fields, "required": sorted({names[name] for name in refused})}


def of_type(kind: str) -> Schema:
    if nested := re.fullmatch(r"list\[(.+)\]", kind):
        return {"type": "array", "items": of_type(nested[1])}
    if nested := re.fullmatch(r"dict[(\[]str, (.+)[)\]]", kind):
        return {"type": "object", "additionalProperties": of_type(nested[1])}
    if kind in SCALARS:
        return {"type": SCALARS[kind]}
    if kind in ("object", "datetime", "ResourceQuantity", "IntOrString"):
        return {}
    return {"$ref": f"#/$defs/{kind.replace('K8sIoApiAppsV1', 'V1')}"}


def of_models() -> dict[str, Schema]:
    imports = "".join(f"from cloudcoil.models.{module} import {kind}\n" for kind, module in CLOUDCOIL.items())
    schemas = ", ".join(f"{kind!r}: {kind}.model_json_schema()" for kind in CLOUDCOIL)
    program = f"import json\n{imports}print(json.dumps({{{schemas}}}))"
    packages = [part for package in MODELS for part in ("--with", package)]
    models: dict[str, Schema] = json.loads(uv("run", "--isolated", "--no-project", *packages, "python", "-c", program))
    return models


def uv(*arguments: str) -> str:
    return subprocess.run([sys.executable, "-m", "uv", *arguments], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
