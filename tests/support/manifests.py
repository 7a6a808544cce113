"""The manifests of Kubernetes: what kubectl makes of a folder, and whether a cluster would take it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

FOLDER = Path("docker/kubernetes")
SCHEMAS = json.loads(Path("tests/golden/crds.json").read_text())  # of KServe, KEDA and the Prometheus Operator
KUBERNETES = "1.31"  # the oldest that is still maintained by the large providers

Resources = dict[tuple[str, str], dict[str, Any]]


def built(kubectl: str, folder: Path) -> Resources:
    """Resources of a folder, by kind and name."""
    done = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return {(r["kind"], r["metadata"]["name"]): r for r in yaml.safe_load_all(done.stdout)}


def validate(resource: dict[str, Any]) -> None:
    """Raises for a field that its schema does not have."""
    if "." in resource["apiVersion"].partition(".k8s.io")[0]:
        jsonschema.validate(resource, SCHEMAS[resource["kind"]])
    else:
        kubernetes_validate.validate(resource, KUBERNETES, strict=True)
    assert resource["kind"] == "Namespace" or resource["metadata"]["namespace"] == "vit-serve"


def pod(resources: Resources, name: str = "vit-serve") -> dict[str, Any]:
    """The pods of a Deployment."""
    spec: dict[str, Any] = resources["Deployment", name]["spec"]["template"]["spec"]
    return spec


def variables(container: dict[str, Any]) -> dict[str, Any]:
    """By name, the value of each, or where it comes from."""
    return {each["name"]: each.get("value", each) for each in container.get("env", [])}


def container(resources: Resources, name: str = "vit-serve") -> dict[str, Any]:
    """The only one of these pods."""
    containers: list[dict[str, Any]] = pod(resources, name)["containers"]
    (found,) = containers
    return found
