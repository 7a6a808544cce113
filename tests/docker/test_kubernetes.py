"""The manifests agree with the service, and KServe runs the container that the Deployment runs.

test_site.py sees whether they are valid.
"""

from pathlib import Path
from typing import Any, get_args

import kubernetes_validate
import pytest
import yaml

from app.bundle import Manifest
from app.settings import Settings

FOLDER = Path("docker/kubernetes")
NAMED = yaml.safe_load((FOLDER / "base/kustomization.yaml").read_text())["resources"]
BASE = {
    (found["kind"], found["metadata"]["name"]): found
    for name in NAMED
    for found in yaml.safe_load_all((FOLDER / "base" / name).read_text())
}
SPECS = {kind: found["spec"] for (kind, name), found in BASE.items() if name == "vit-serve" and "spec" in found}
POD = SPECS["Deployment"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
RUNTIME, SERVICE = (yaml.safe_load((FOLDER / f"kserve/{name}.yaml").read_text()) for name in ("runtime", "service"))
PREDICTOR = SERVICE["spec"]["predictor"]
(OF_KSERVE,) = RUNTIME["spec"]["containers"]


def environment(container: dict[str, Any]) -> dict[str, Any]:
    return {variable["name"]: variable.get("value", variable) for variable in container["env"]}


def test_every_file_is_in_use():
    assert {file.name for file in (FOLDER / "base").iterdir()} == {*NAMED, "kustomization.yaml"}


def test_the_gpu_overlay_patches_what_is_there_and_every_variable_is_a_setting():
    patch = yaml.safe_load((FOLDER / "gpu/deployment.yaml").read_text())
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    assert (patch["kind"], patch["metadata"]["name"]) in BASE
    assert container["name"] == CONTAINER["name"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 1
    variables = environment(container).keys() | environment(CONTAINER)
    assert {name.removeprefix("VIT_").lower() for name in variables} <= set(Settings.model_fields)
    (mount,), (volume,) = container["volumeMounts"], patch["spec"]["template"]["spec"]["volumes"]
    assert mount["name"] == volume["name"]
    assert f"CUDA_CACHE_PATH={mount['mountPath']}/" in Path("Dockerfile").read_text()


def test_threads_and_decoders_follow_the_cpu_request_and_not_the_node():
    fields = {v["name"]: v["valueFrom"]["resourceFieldRef"]["resource"] for v in CONTAINER["env"] if "valueFrom" in v}
    names = ("VIT_MODEL_THREADS", "VIT_DECODE_WORKERS")
    assert fields == dict.fromkeys(names, "requests.cpu")


def test_probes_ask_what_the_service_answers(client):
    probes = [CONTAINER[f"{kind}Probe"]["httpGet"] for kind in ("startup", "readiness", "liveness")]
    assert [client.get(probe["path"]).status_code for probe in probes] == [200, 200, 200]
    assert {probe["port"] for probe in probes} == {"http"}
    ports = {port["name"]: port["containerPort"] for port in CONTAINER["ports"]}
    assert ports == {"http": Settings().port, "metrics": int(environment(CONTAINER)["VIT_METRICS_PORT"])}
    annotations = SPECS["Deployment"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == str(ports["metrics"])


def test_a_pod_has_time_to_drain():
    drain = [float(environment(CONTAINER)[f"VIT_DRAIN_{part}_S"]) for part in ("DELAY", "TIMEOUT")]
    assert drain == [Settings().drain_delay_s, Settings().drain_timeout_s]
    assert POD["terminationGracePeriodSeconds"] > sum(drain)
    readiness = CONTAINER["readinessProbe"]
    assert readiness["periodSeconds"] * readiness["failureThreshold"] + readiness["timeoutSeconds"] < drain[0]


@pytest.mark.parametrize("name", ["vit-serve", "redis"])
def test_a_pod_has_no_permission_that_it_does_not_need(name):
    pod = BASE["Deployment", name]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not pod["automountServiceAccountToken"]
    assert not pod["enableServiceLinks"]  # a Service named `vit` would set VIT_PORT
    assert container["securityContext"] == {
        "readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert container["resources"]["limits"]["memory"]


def test_everything_selects_the_same_pods():
    labels = SPECS["Deployment"]["template"]["metadata"]["labels"]
    assert SPECS["Service"]["selector"] == labels
    assert SPECS["PodDisruptionBudget"]["selector"]["matchLabels"] == labels
    assert SPECS["NetworkPolicy"]["podSelector"]["matchLabels"] == labels
    assert SPECS["HorizontalPodAutoscaler"]["scaleTargetRef"]["name"] == "vit-serve"


def test_the_autoscaler_leaves_the_disruption_budget_something_to_disrupt():
    assert SPECS["HorizontalPodAutoscaler"]["minReplicas"] > SPECS["PodDisruptionBudget"]["maxUnavailable"]
    assert "replicas" not in SPECS["Deployment"]


def test_the_container_of_kserve_is_that_of_the_deployment_with_the_bundle_where_kserve_puts_it():
    assert OF_KSERVE | {"name": CONTAINER["name"], "env": CONTAINER["env"]} == CONTAINER
    expected = environment(CONTAINER) | {"VIT_BUNDLE": "/mnt/models"}
    del expected["VIT_STORE"]  # maps of the one replica are in its memory
    assert environment(OF_KSERVE) == expected
    assert (PREDICTOR["minReplicas"], PREDICTOR["maxReplicas"]) == (1, 1)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [OF_KSERVE]}}
    kubernetes_validate.validate(pod, "1.31", strict=True)


def test_the_pod_of_kserve_is_that_of_the_deployment_and_has_longer_than_a_request_takes():
    same = ("automountServiceAccountToken", "enableServiceLinks", "terminationGracePeriodSeconds", "securityContext")
    assert {name: PREDICTOR[name] for name in same} == {name: POD[name] for name in same}
    assert PREDICTOR["timeout"] > Settings().request_timeout_s


def test_the_service_of_kserve_is_one_that_the_runtime_can_serve():
    model, runtime = PREDICTOR["model"], RUNTIME["spec"]
    (form,) = runtime["supportedModelFormats"]
    assert model["modelFormat"].items() <= form.items()
    assert form["version"] == str(*get_args(Manifest.model_fields["format"].annotation))
    assert model["protocolVersion"] in runtime["protocolVersions"]
    assert model["runtime"] == RUNTIME["metadata"]["name"]
    assert runtime["annotations"]["prometheus.kserve.io/port"] == environment(OF_KSERVE)["VIT_METRICS_PORT"]
