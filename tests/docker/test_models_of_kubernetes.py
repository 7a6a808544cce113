"""What kubectl makes of docker/kubernetes/models: nothing of one model selects, names or changes another. test_site.py
sees whether it is valid.
"""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path("docker/kubernetes")
MODELS = {path.name for path in (FOLDER / "models").iterdir() if path.is_dir()} - {"shared", "model"}
Resource = dict[str, Any]
Build = Callable[[Path], list[Resource]]


@pytest.fixture(scope="module")
def build(need) -> Build:
    def built(folder: Path) -> list[Resource]:
        done = subprocess.run([need("kubectl"), "kustomize", folder], check=True, capture_output=True, text=True)
        return [*yaml.safe_load_all(done.stdout)]

    return built


@pytest.fixture(scope="module")
def resources(build) -> list[Resource]:
    return build(FOLDER / "models")


def of_kind(resources: list[Resource], kind: str) -> dict[str, Resource]:
    return {found["metadata"]["name"]: found for found in resources if found["kind"] == kind}


def selected(resources: list[Resource], selector: dict[str, str]) -> set[str]:
    """Names of the Deployments whose pods have these labels."""
    pods = {name: d["spec"]["template"]["metadata"]["labels"] for name, d in of_kind(resources, "Deployment").items()}
    return {name for name, labels in pods.items() if selector.items() <= labels.items()}


def test_what_selects_pods_selects_those_of_one_model(resources):
    for name, service in of_kind(resources, "Service").items():
        assert selected(resources, service["spec"]["selector"]) == {name}
    for kind in ("Deployment", "PodDisruptionBudget"):
        for name, found in of_kind(resources, kind).items():
            assert selected(resources, found["spec"]["selector"]["matchLabels"]) == {name}
    for model in MODELS:
        spec = of_kind(resources, "Deployment")[f"{model}-vit-serve"]["spec"]["template"]["spec"]
        (spread,) = spec["topologySpreadConstraints"]
        assert selected(resources, spread["labelSelector"]["matchLabels"]) == {f"{model}-vit-serve"}


def test_a_model_has_a_path_an_image_and_a_line_of_the_list(resources):
    (rule,) = of_kind(resources, "Ingress")["models"]["spec"]["rules"]
    paths = {(path["path"], path["pathType"]): path["backend"]["service"] for path in rule["http"]["paths"]}
    assert paths.pop(("/", "Exact"))["name"] == "models"
    for (path, kind), service in paths.items():
        assert (kind, service["name"]) == ("Prefix", f"{path[1:]}-vit-serve")
    assert {path for path, _ in paths} == {f"/{model}" for model in MODELS}
    images = set()
    for model in MODELS:
        (container,) = of_kind(resources, "Deployment")[f"{model}-vit-serve"]["spec"]["template"]["spec"]["containers"]
        assert {"name": "VIT_ROOT_PATH", "value": f"/{model}"} in container["env"]
        images.add(container["image"])
    assert len(images) == len(MODELS)
    (listed,) = (found["data"] for name, found in of_kind(resources, "ConfigMap").items() if name.startswith("models-"))
    assert listed.keys() == MODELS


def test_the_pod_of_the_list_mounts_what_is_there(resources):
    pod = of_kind(resources, "Deployment")["models"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    named = {volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume}
    assert named <= of_kind(resources, "ConfigMap").keys()
    assert container["securityContext"]["readOnlyRootFilesystem"]


def test_all_models_reach_one_redis_and_nothing_else(resources):
    policies = of_kind(resources, "NetworkPolicy")
    replicas = {f"{model}-vit-serve" for model in MODELS}
    assert selected(resources, policies["vit-serve"]["spec"]["podSelector"]["matchLabels"]) == replicas
    (allowed,) = policies["redis"]["spec"]["ingress"][0]["from"]
    assert selected(resources, allowed["podSelector"]["matchLabels"]) == replicas
    assert selected(resources, policies["models"]["spec"]["podSelector"]["matchLabels"]) == {"models"}
    assert "redis" in of_kind(resources, "Service")
    assert policies.keys() == {"vit-serve", "redis", "models"}


def test_prometheus_and_keda_keep_the_models_apart(resources):
    (monitor,) = of_kind(resources, "ServiceMonitor").values()
    assert monitor["spec"]["targetLabels"] == ["model"]
    for model in MODELS:
        assert of_kind(resources, "Service")[f"{model}-vit-serve"]["metadata"]["labels"]["model"] == model
        scaled = of_kind(resources, "ScaledObject")[f"{model}-vit-serve"]["spec"]
        assert scaled["scaleTargetRef"]["name"] == f"{model}-vit-serve"
        assert f'model="{model}"' in scaled["triggers"][0]["metadata"]["query"]


def test_without_keda_each_model_has_an_autoscaler(build, tmp_path):
    shutil.copytree(FOLDER, tmp_path / "kubernetes")
    for model in MODELS:
        file = tmp_path / "kubernetes/models" / model / "kustomization.yaml"
        file.write_text(file.read_text().replace("  - ../../keda\n", "").replace("components:", "components: []"))
    scalers = of_kind(build(tmp_path / "kubernetes/models"), "HorizontalPodAutoscaler")
    assert {name: found["spec"]["scaleTargetRef"]["name"] for name, found in scalers.items()} == {
        f"{model}-vit-serve": f"{model}-vit-serve" for model in MODELS
    }


def test_one_model_alone_is_what_it_is_among_the_others(build, resources):
    for model in MODELS:
        alone = build(FOLDER / "models" / model)
        assert alone == [found for found in resources if found["metadata"].get("labels", {}).get("model") == model]
