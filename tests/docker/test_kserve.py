"""KServe runs the container that the Deployment runs, with the bundle where KServe puts it."""

from pathlib import Path
from typing import Any, get_args

import kubernetes_validate
import yaml

from app.bundle import Manifest
from app.settings import Settings

FOLDER = Path("docker/kubernetes")
RUNTIME, SERVICE, DEPLOYMENT = (
    yaml.safe_load((FOLDER / name).read_text())
    for name in ("kserve/runtime.yaml", "kserve/service.yaml", "base/deployment.yaml")
)
PREDICTOR, POD = SERVICE["spec"]["predictor"], DEPLOYMENT["spec"]["template"]["spec"]
(CONTAINER,) = RUNTIME["spec"]["containers"]


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


def test_the_pod_is_that_of_the_deployment_and_has_longer_than_a_request_takes():
    same = ("automountServiceAccountToken", "enableServiceLinks", "terminationGracePeriodSeconds", "securityContext")
    assert {name: PREDICTOR[name] for name in same} == {name: POD[name] for name in same}
    assert PREDICTOR["timeout"] > Settings().request_timeout_s


def test_metrics_are_read_from_their_own_port():
    port = RUNTIME["spec"]["annotations"]["prometheus.kserve.io/port"]
    assert port == variables(CONTAINER)["VIT_METRICS_PORT"]["value"]


def test_the_service_is_one_that_the_runtime_can_serve():
    model = PREDICTOR["model"]
    (form,) = RUNTIME["spec"]["supportedModelFormats"]
    assert model["modelFormat"].items() <= form.items()
    assert form["version"] == str(*get_args(Manifest.model_fields["format"].annotation))
    assert model["protocolVersion"] in RUNTIME["spec"]["protocolVersions"]
    assert model["runtime"] == RUNTIME["metadata"]["name"]
