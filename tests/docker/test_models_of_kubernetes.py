"""What kubectl makes of docker/kubernetes/models: nothing of one model selects, names or changes another."""

import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.manifests import FOLDER, Resources, built, container, pod, validate
from tests.support.pages import block

MODELS = {path.name for path in (FOLDER / "models").iterdir() if path.is_dir()} - {"shared", "model"}


@pytest.fixture(scope="module")
def make(need) -> Callable[[Path], Resources]:
    return partial(built, need("kubectl"))


@pytest.fixture(scope="module")
def resources(make) -> Resources:
    return make(FOLDER / "models")


def of_kind(resources: Resources, kind: str) -> dict[str, dict[str, Any]]:
    return {name: found for (of, name), found in resources.items() if of == kind}


def selected(resources: Resources, selector: dict[str, str]) -> set[str]:
    """Names of the Deployments whose pods have these labels."""
    pods = {name: d["spec"]["template"]["metadata"]["labels"] for name, d in of_kind(resources, "Deployment").items()}
    return {name for name, labels in pods.items() if selector.items() <= labels.items()}


def test_every_resource_is_valid(resources):
    for resource in resources.values():
        validate(resource)


def test_what_selects_pods_selects_those_of_one_model(resources):
    for name, service in of_kind(resources, "Service").items():
        assert selected(resources, service["spec"]["selector"]) == {name}
    for kind in ("Deployment", "PodDisruptionBudget"):
        for name, found in of_kind(resources, kind).items():
            assert selected(resources, found["spec"]["selector"]["matchLabels"]) == {name}
    for model in MODELS:
        (spread,) = pod(resources, f"{model}-vit-serve")["topologySpreadConstraints"]
        assert selected(resources, spread["labelSelector"]["matchLabels"]) == {f"{model}-vit-serve"}


def test_a_model_has_a_path_an_image_and_a_line_of_the_list(resources):
    (rule,) = resources["Ingress", "models"]["spec"]["rules"]
    paths = {(path["path"], path["pathType"]): path["backend"]["service"]["name"] for path in rule["http"]["paths"]}
    expected = {(f"/{model}", "Prefix"): f"{model}-vit-serve" for model in MODELS}
    assert paths == expected | {("/", "Exact"): "models"}
    served = {model: container(resources, f"{model}-vit-serve") for model in MODELS}
    assert all({"name": "VIT_ROOT_PATH", "value": f"/{model}"} in served[model]["env"] for model in MODELS)
    assert len({found["image"] for found in served.values()}) == len(MODELS)
    (listed,) = (found["data"] for name, found in of_kind(resources, "ConfigMap").items() if name.startswith("models-"))
    assert listed.keys() == MODELS


def test_the_pod_of_the_list_mounts_what_is_there(resources):
    volumes = pod(resources, "models")["volumes"]
    mounted = container(resources, "models")["volumeMounts"]
    assert {mount["name"] for mount in mounted} == {volume["name"] for volume in volumes}
    named = {volume["configMap"]["name"] for volume in volumes if "configMap" in volume}
    assert named <= of_kind(resources, "ConfigMap").keys()
    assert container(resources, "models")["securityContext"]["readOnlyRootFilesystem"]


def test_all_models_reach_one_redis_and_nothing_else(resources):
    policies = of_kind(resources, "NetworkPolicy")
    replicas = {f"{model}-vit-serve" for model in MODELS}
    assert selected(resources, policies["vit-serve"]["spec"]["podSelector"]["matchLabels"]) == replicas
    (allowed,) = policies["redis"]["spec"]["ingress"][0]["from"]
    assert selected(resources, allowed["podSelector"]["matchLabels"]) == replicas
    assert selected(resources, policies["models"]["spec"]["podSelector"]["matchLabels"]) == {"models"}
    assert policies.keys() == {"vit-serve", "redis", "models"}
    assert ("Service", "redis") in resources


def test_prometheus_and_keda_keep_the_models_apart(resources):
    assert resources["ServiceMonitor", "vit-serve"]["spec"]["targetLabels"] == ["model"]
    for model in MODELS:
        assert resources["Service", f"{model}-vit-serve"]["metadata"]["labels"]["model"] == model
        scaled = resources["ScaledObject", f"{model}-vit-serve"]["spec"]
        assert scaled["scaleTargetRef"]["name"] == f"{model}-vit-serve"
        assert f'model="{model}"' in scaled["triggers"][0]["metadata"]["query"]


def test_without_keda_each_model_has_an_autoscaler(make, tmp_path):
    shutil.copytree(FOLDER, tmp_path / "kubernetes")
    for model in MODELS:
        file = tmp_path / "kubernetes/models" / model / "kustomization.yaml"
        file.write_text(file.read_text().replace("  - ../../keda\n", "").replace("components:", "components: []"))
    scalers = of_kind(make(tmp_path / "kubernetes/models"), "HorizontalPodAutoscaler")
    assert {name: found["spec"]["scaleTargetRef"]["name"] for name, found in scalers.items()} == {
        f"{model}-vit-serve": f"{model}-vit-serve" for model in MODELS
    }


def test_the_first_day_pushes_the_image_of_each_model(resources):
    page = block("first day of several", Path("docs/deployment.md"))
    pushed = set(re.findall(r"docker push registry\.example/(\S+)", page))
    assert set(re.findall(r"-t registry\.example/(\S+)", page)) == pushed
    assert {container(resources, f"{model}-vit-serve")["image"] for model in MODELS} == pushed


def test_keys_are_those_of_every_model_and_are_switched_on_in_one_place(make, tmp_path):
    shutil.copytree(FOLDER, tmp_path / "kubernetes")
    file = tmp_path / "kubernetes/models/model/kustomization.yaml"
    file.write_text(file.read_text().replace("# - ../../keys", "- ../../keys"))
    resources = make(tmp_path / "kubernetes/models")
    for model in MODELS:
        assert "VIT_API_KEYS_FILE" in [v["name"] for v in container(resources, f"{model}-vit-serve")["env"]]
        (keys,) = pod(resources, f"{model}-vit-serve")["volumes"]
        assert keys["secret"] == {"secretName": "vit-serve-keys"}  # which has no prefix: of all models


def test_one_model_alone_is_what_it_is_among_the_others(make, resources):
    for model in MODELS:
        labelled = {at: r for at, r in resources.items() if r["metadata"].get("labels", {}).get("model") == model}
        assert make(FOLDER / "models" / model) == labelled
