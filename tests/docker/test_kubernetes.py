"""What kubectl makes of docker/kubernetes: a cluster takes it, and what one resource says of another is so."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.settings import Settings
from tests.docker.conftest import COMPONENTS, Site
from tests.support.manifests import SCHEMAS, Resources, container, pod, validate, variables

OTHER = {  # than those that are shipped
    "image": "registry.example/vit@sha256:0", "cpu": "1717m", "memory": "5151Mi", "memory-request": "3131Mi",
    "store": "rediss://cache.example:6380/1", "store-addresses": "203.0.113.0/28", "store-port": "6380",
    "otlp": "https://collector.example", "otlp-addresses": "198.51.100.7/32", "otlp-port": "4443",
    "replicas-least": "4041", "replicas-most": "4044", "images-per-replica": "4099",
    "prometheus": "http://prometheus.example", "prometheus-release": "other-release",
    "host": "birds.example", "tls-secret": "birds-tls", "ingress-class": "traefik",
    "gateway": "other-gateway", "gateway-namespace": "other-gateways",
    "bundle-image": "registry.example/birds:7", "bundle-folder": "/bundles/birds-7",
}  # fmt: skip


def of_kind(resources: Resources, kind: str) -> dict[str, dict[str, Any]]:
    return {name: found for (of, name), found in resources.items() if of == kind}


def selected(resources: Resources, labels: dict[str, str]) -> set[str]:
    """Names of the Deployments whose pods have these labels."""
    pods = {name: d["spec"]["template"]["metadata"]["labels"] for name, d in of_kind(resources, "Deployment").items()}
    return {name for name, found in pods.items() if labels.items() <= found.items()}


@pytest.fixture(params=["base", "gpu", "site", "all of a site", "kserve", "canary", "models"])
def resources(request, site: Site) -> Resources:
    whole = request.param == "all of a site"
    return site(*COMPONENTS, base="../gpu") if whole else site(of=request.param)


def test_a_cluster_takes_every_resource(resources):
    for resource in resources.values():
        validate(resource)


def test_the_schemas_of_other_projects_take_no_unknown_field():
    """At any depth: without that, the test above finds no misspelt one."""
    closed: list[dict[str, Any]] = []
    json.loads(json.dumps(SCHEMAS), object_hook=lambda part: closed.append(part) or part)
    assert closed
    assert [part for part in closed if "properties" in part and part["additionalProperties"]] == []


def test_what_one_resource_says_of_another_is_so(resources):
    deployments, services = of_kind(resources, "Deployment"), of_kind(resources, "Service")
    for (kind, name), found in resources.items():
        spec = found.get("spec", {})
        if kind == "Service":
            (owner,) = selected(resources, spec["selector"])
            ports = {port["name"] for port in container(resources, owner)["ports"]}
            assert {port["targetPort"] for port in spec["ports"]} <= ports | {6379}
        elif kind == "Deployment" or kind == "PodDisruptionBudget":
            assert selected(resources, spec["selector"]["matchLabels"]) == {name}
        elif kind == "NetworkPolicy":
            peers = [peer for rule in spec.get("ingress", []) for peer in rule["from"] if "podSelector" in peer]
            for selector in (spec, *peers):
                assert selected(resources, selector["podSelector"]["matchLabels"]), name
        elif kind in ("HorizontalPodAutoscaler", "ScaledObject"):
            assert spec["scaleTargetRef"]["name"] in deployments
        elif kind == "ServiceMonitor":
            wanted = spec["selector"]["matchLabels"].items()
            asked = [one for one in services.values() if wanted <= one["metadata"].get("labels", {}).items()]
            assert asked
            for service in asked:
                assert spec["endpoints"][0]["port"] in [port["name"] for port in service["spec"]["ports"]]
        elif kind == "HTTPRoute":
            for backend in spec["rules"][0]["backendRefs"]:
                assert backend["port"] in [port["port"] for port in services[backend["name"]]["spec"]["ports"]]
        elif kind == "Ingress":
            for backend in (path["backend"]["service"] for path in spec["rules"][0]["http"]["paths"]):
                ports = services[backend["name"]]["spec"]["ports"]
                assert backend["port"]["name"] in [port["name"] for port in ports]


def test_a_pod_mounts_what_is_there_and_has_no_permission_that_it_does_not_need(resources):
    for name in of_kind(resources, "Deployment"):
        found = pod(resources, name)
        volumes = {volume["name"]: volume for volume in found.get("volumes", [])}
        for served in (*found["containers"], *found.get("initContainers", [])):
            assert {mount["name"] for mount in served.get("volumeMounts", [])} <= volumes.keys()
            security = {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False}
            assert served["securityContext"] == {**security, "capabilities": {"drop": ["ALL"]}}
        for volume in volumes.values():
            if "configMap" in volume:
                assert volume["configMap"]["name"] in of_kind(resources, "ConfigMap")
        assert found["securityContext"]["runAsNonRoot"]
        assert found["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not found["automountServiceAccountToken"]
        assert not found["enableServiceLinks"]  # a Service named `vit` would set VIT_PORT
        assert found["containers"][0]["resources"]["limits"]["memory"]


def test_a_replica_has_known_settings_and_probes_that_the_service_answers_and_time_to_drain(site, client):
    replica, found = container(resources := site(base="../gpu")), pod(resources)
    given = variables(replica)
    known = {f"VIT_{name.upper()}" for name in Settings.model_fields} | {"OTEL_EXPORTER_OTLP_ENDPOINT"}
    assert given.keys() <= known
    assert "requests.cpu" in str(given["VIT_MODEL_THREADS"])
    assert "limits.cpu" not in str(given)  # which would be the cores of the node
    probes = {kind: replica[f"{kind}Probe"] for kind in ("startup", "readiness", "liveness")}
    assert [client.get(probe["httpGet"]["path"]).status_code for probe in probes.values()] == 3 * [200]
    ports = {port["name"]: port["containerPort"] for port in replica["ports"]}
    assert ports == {"http": Settings().port, "metrics": int(given["VIT_METRICS_PORT"])}
    delay, drain = float(given["VIT_DRAIN_DELAY_S"]), float(given["VIT_DRAIN_TIMEOUT_S"])
    assert found["terminationGracePeriodSeconds"] > delay + drain
    ready = probes["readiness"]
    assert ready["periodSeconds"] * ready["failureThreshold"] + ready["timeoutSeconds"] < delay
    caches = {mount["mountPath"] for mount in replica["volumeMounts"]}  # of compiled kernels
    assert set(re.findall(r"CUDA_CACHE_PATH=(/\S+)/", Path("Dockerfile").read_text())) <= caches


def test_the_ingress_and_the_route_have_the_limits_of_the_service(site):
    (rule,) = site("route")["HTTPRoute", "vit-serve"]["spec"]["rules"]
    assert float(rule["timeouts"]["request"].removesuffix("s")) > Settings().request_timeout_s
    annotations = site("ingress")["Ingress", "vit-serve"]["metadata"]["annotations"]
    said = {name.partition("/")[2]: value for name, value in annotations.items()}
    assert said["proxy-body-size"] == f"{Settings().max_upload_bytes // 2**20}m"
    assert float(said["proxy-read-timeout"]) > Settings().request_timeout_s


def test_the_site_is_the_base_until_its_values_are_changed_and_every_value_arrives(site, folder):
    base, shipped = site(of="base"), site()
    del base["HorizontalPodAutoscaler", "vit-serve"]  # KEDA makes its own
    container(base)["env"].append({"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": None})
    assert {name: shipped[name] for name in base} == base
    values = folder / "site/values.yaml"
    given = yaml.safe_load(values.read_text())
    assert given["data"].keys() == OTHER.keys()
    values.write_text(yaml.safe_dump(given | {"data": OTHER}))
    made = "\n---\n".join(
        yaml.safe_dump(resource)
        for components in (("ingress", "bundle-image"), ("route", "bundle-volume"))
        for at, resource in site(*components).items()
        if at != ("ConfigMap", "values")
    )
    assert [name for name, value in OTHER.items() if str(value) not in made] == []
    assert [value for value in given["data"].values() if value and len(value) > 9 and value in made] == []


def test_kserve_runs_the_container_of_the_deployment_with_the_bundle_where_kserve_puts_it(site):
    kserve, served = site(of="kserve"), container(site(of="base"))
    ((of_kserve,),) = (found["spec"]["containers"] for (kind, _), found in kserve.items() if kind.endswith("Runtime"))
    assert of_kserve | {"name": served["name"], "env": served["env"]} == served
    expected = variables(served) | {"VIT_BUNDLE": "/mnt/models"}
    del expected["VIT_STORE"]  # maps of the one replica are in its memory
    assert variables(of_kserve) == expected
