"""What kubectl makes of the folders, and where the numbers of site/values.yaml arrive."""

import json
import shutil
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.manifests import FOLDER, SCHEMAS, Resources, container, validate

OTHER = {  # than those that are shipped
    "image": "registry.example/vit@sha256:0", "cpu": "7", "memory": "5Gi", "memory-request": "3Gi",
    "store": "rediss://cache.example:6380/1", "store-addresses": "203.0.113.0/28", "store-port": "6380",
    "otlp": "https://collector.example", "otlp-addresses": "198.51.100.7/32", "otlp-port": "443",
    "replicas-least": "4", "replicas-most": "44", "images-per-replica": "99", "prometheus": "http://prometheus.example",
    "prometheus-release": "monitoring",
    "host": "birds.example", "tls-secret": "birds-tls", "ingress-class": "traefik",
    "bundle-image": "registry.example/birds:7", "bundle-folder": "/bundles/birds-7",
}  # fmt: skip


@pytest.fixture
def other_site(tmp_path) -> Path:
    """The site with other values."""
    shutil.copytree(FOLDER, tmp_path / "kubernetes")
    site = tmp_path / "kubernetes/site"
    values = yaml.safe_load((site / "values.yaml").read_text())
    assert values["data"].keys() == OTHER.keys()
    (site / "values.yaml").write_text(yaml.safe_dump(values | {"data": OTHER}))
    return site


def outside(resources: Resources) -> list[tuple[dict[str, Any], list[int]]]:
    """Blocks of addresses that a policy lets replicas connect to, each with its ports."""
    labels = resources["Deployment", "vit-serve"]["spec"]["template"]["metadata"]["labels"]
    policies = [resource["spec"] for (kind, _), resource in resources.items() if kind == "NetworkPolicy"]
    return [
        (to["ipBlock"], [port["port"] for port in rule["ports"]])
        for policy in policies
        if policy["podSelector"]["matchLabels"].items() <= labels.items()
        for rule in policy.get("egress", [])
        for to in rule["to"]
        if "ipBlock" in to and rule["ports"][0]["port"] != 53  # resolvers of the node
    ]


@pytest.mark.parametrize("folder", ["base", "gpu", "site", "kserve", "canary"])
def test_every_resource_is_valid(build, folder):
    for resource in build(FOLDER / folder).values():
        validate(resource)


def test_the_schemas_of_other_projects_take_no_unknown_field():
    """At any depth."""
    closed: list[dict[str, Any]] = []
    json.loads(json.dumps(SCHEMAS), object_hook=lambda part: closed.append(part) or part)
    assert closed
    assert [part for part in closed if "properties" in part and part["additionalProperties"]] == []


def test_the_site_without_other_values_is_the_base(build):
    base, site = build(FOLDER / "base"), build(FOLDER / "site")
    del base["HorizontalPodAutoscaler", "vit-serve"]
    container(base)["env"].append({"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": None})
    assert {name: site[name] for name in base} == base
    assert {kind for kind, _ in site.keys() - base.keys()} == {
        "ConfigMap", "NetworkPolicy", "PrometheusRule", "ServiceMonitor", "ScaledObject",
    }  # fmt: skip


def test_the_dashboard_is_found_by_grafana(build):
    found = build(FOLDER / "site")["ConfigMap", "vit-serve-dashboard"]
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found["data"] == {"vit-serve.json": (FOLDER / "monitoring/dashboard.json").read_text()}


def test_prometheus_finds_the_metrics_port(build):
    site = build(FOLDER / "site")
    (endpoint,) = site["ServiceMonitor", "vit-serve"]["spec"]["endpoints"]
    wanted = site["ServiceMonitor", "vit-serve"]["spec"]["selector"]["matchLabels"].items()
    (service,) = (r for (kind, _), r in site.items() if kind == "Service" and wanted <= r["metadata"]["labels"].items())
    (port,) = (port for port in service["spec"]["ports"] if port["name"] == endpoint["port"])
    assert port["targetPort"] in [port["name"] for port in container(site)["ports"]]


def test_both_autoscalers_scale_alike(build):
    hpa = build(FOLDER / "base")["HorizontalPodAutoscaler", "vit-serve"]["spec"]
    keda = build(FOLDER / "site")["ScaledObject", "vit-serve"]["spec"]
    (trigger,) = keda["triggers"]
    assert keda["scaleTargetRef"]["name"] == hpa["scaleTargetRef"]["name"]
    assert (keda["minReplicaCount"], keda["maxReplicaCount"]) == (hpa["minReplicas"], hpa["maxReplicas"])
    assert keda["advanced"]["horizontalPodAutoscalerConfig"]["behavior"] == hpa["behavior"]
    assert trigger["metadata"]["threshold"] == hpa["metrics"][0]["pods"]["target"]["averageValue"]
    assert hpa["metrics"][0]["pods"]["metric"]["name"] in trigger["metadata"]["query"]


def test_the_values_arrive(build, other_site):
    resources = build(other_site)
    served, keda = container(resources), resources["ScaledObject", "vit-serve"]["spec"]
    assert served["image"] == OTHER["image"]
    assert served["resources"]["requests"] == {"cpu": OTHER["cpu"], "memory": OTHER["memory-request"]}
    assert served["resources"]["limits"] == {"memory": OTHER["memory"]}
    assert {"name": "VIT_STORE", "value": OTHER["store"]} in served["env"]
    assert {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": OTHER["otlp"]} in served["env"]
    assert (keda["minReplicaCount"], keda["maxReplicaCount"]) == (4, 44)
    assert keda["triggers"][0]["metadata"]["threshold"] == OTHER["images-per-replica"]
    assert keda["triggers"][0]["metadata"]["serverAddress"] == OTHER["prometheus"]
    for kind in ("ServiceMonitor", "PrometheusRule"):
        assert resources[kind, "vit-serve"]["metadata"]["labels"]["release"] == OTHER["prometheus-release"]
    allowed = [(block["cidr"], ports) for block, ports in outside(resources)]  # to which replicas connect
    assert allowed == [(OTHER["store-addresses"], [6380]), (OTHER["otlp-addresses"], [443])]


def test_the_site_without_other_values_reaches_no_address_of_a_machine(build):
    """192.0.2.0/24 is for documentation: RFC 5737."""
    allowed = [block["cidr"] for block, _ in outside(build(FOLDER / "site"))]
    assert all(ip_network(cidr).subnet_of(ip_network("192.0.2.0/24")) for cidr in allowed)


def test_the_values_arrive_without_keda_and_with_gpus(build, other_site):
    kustomization = other_site / "kustomization.yaml"
    kustomization.write_text(kustomization.read_text().replace("  - ../keda\n", "").replace("../base", "../gpu"))
    resources = build(other_site)
    hpa = resources["HorizontalPodAutoscaler", "vit-serve"]["spec"]
    assert (hpa["minReplicas"], hpa["maxReplicas"]) == (4, 44)
    assert hpa["metrics"][0]["pods"]["target"]["averageValue"] == OTHER["images-per-replica"]
    assert container(resources)["resources"]["limits"] == {"memory": OTHER["memory"], "nvidia.com/gpu": 1}
