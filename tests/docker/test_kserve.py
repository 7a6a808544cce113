"""KServe runs the container that the Deployment runs, with the bundle where KServe puts it."""

from pathlib import Path
from typing import Any, get_args

import kubernetes_validate
import pytest
import yaml

from app.bundle import Manifest
from app.settings import Settings

FOLDER = Path("docker/kubernetes")
RUNTIME = yaml.safe_load((FOLDER / "kserve/runtime.yaml").read_text())["spec"]
SERVICE = yaml.safe_load((FOLDER / "kserve/service.yaml").read_text())
PREDICTOR = SERVICE["spec"]["predictor"]
(CONTAINER,) = RUNTIME["containers"]
POD = yaml.safe_load((FOLDER / "base/deployment.yaml").read_text())["spec"]["template"]["spec"]


def variables(container: dict[str, Any]) -> dict[str, Any]:
    return {variable["name"]: variable for variable in container["env"]}


def test_the_container_is_that_of_the_deployment():
    (ours,) = POD["containers"]
    assert CONTAINER | {"name": ours["name"], "env": ours["env"]} == ours
    env = variables(CONTAINER)
    assert env.pop("VIT_BUNDLE")["value"] == "/mnt/models"  # where KServe puts what storageUri names
    expected = variables(ours)
    expected.pop("VIT_STORE")  # maps of the one replica are in its memory
    assert env == expected
    assert (PREDICTOR["minReplicas"], PREDICTOR["maxReplicas"]) == (1, 1)


def test_the_container_is_valid_kubernetes():
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [CONTAINER]}}
    kubernetes_validate.validate(pod, "1.31", strict=True)


@pytest.mark.parametrize(
    "field", ["automountServiceAccountToken", "enableServiceLinks", "terminationGracePeriodSeconds", "securityContext"]
)
def test_the_pod_is_that_of_the_deployment(field):
    assert PREDICTOR[field] == POD[field]


def test_metrics_are_read_from_their_own_port():
    assert RUNTIME["annotations"]["prometheus.kserve.io/port"] == variables(CONTAINER)["VIT_METRICS_PORT"]["value"]


def test_the_service_is_one_that_the_runtime_can_serve():
    model = PREDICTOR["model"]
    (form,) = RUNTIME["supportedModelFormats"]
    assert model["modelFormat"].items() <= form.items()
    assert form["version"] == str(*get_args(Manifest.model_fields["format"].annotation))
    assert model["protocolVersion"] in RUNTIME["protocolVersions"]
    assert model["runtime"] == yaml.safe_load((FOLDER / "kserve/runtime.yaml").read_text())["metadata"]["name"]


def test_kserve_waits_longer_than_a_request_takes():
    assert PREDICTOR["timeout"] > Settings().request_timeout_s
