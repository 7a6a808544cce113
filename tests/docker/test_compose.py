"""compose.yaml agrees with the service, and gives no container more than it needs."""

import re
from pathlib import Path

import pytest
import yaml

from app.settings import Settings

COMPOSE = yaml.safe_load(Path("docker/compose.yaml").read_text())
SERVICES = COMPOSE["services"]
REPLICAS = ["replica", "replica-gpu"]
(USER,) = re.findall(r"^USER (\d+):", Path("Dockerfile").read_text(), re.MULTILINE)[:1]


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_has_no_permission_that_it_does_not_need(name):
    service = SERVICES[name]
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {"cpus", "memory", "pids"} <= set(service["deploy"]["resources"]["limits"])


@pytest.mark.parametrize("name", REPLICAS)
def test_a_replica_has_known_settings_and_time_to_drain(name):
    assert {key.removeprefix("VIT_").lower() for key in SERVICES[name]["environment"]} <= set(Settings.model_fields)
    assert SERVICES[name]["environment"]["VIT_API_KEYS"] is None  # that of the shell, and left out where that has none
    assert int(SERVICES[name]["stop_grace_period"][:-1]) > Settings().drain_delay_s + Settings().drain_timeout_s


@pytest.mark.parametrize("name", REPLICAS)
def test_balancers_and_prometheus_find_replicas_by_their_alias(name):
    (alias,) = SERVICES[name]["networks"]["inside"]["aliases"]
    for file in ("nginx.conf", "haproxy.cfg"):
        assert f" {alias}:{Settings().port} " in Path("docker", file).read_text()
    (scrape,) = yaml.safe_load(Path("docker/monitoring/prometheus.yaml").read_text())["scrape_configs"]
    (asked,) = scrape["dns_sd_configs"]
    assert (asked["names"], asked["port"]) == ([alias], int(SERVICES[name]["environment"]["VIT_METRICS_PORT"]))


def test_a_replica_on_a_gpu_can_keep_compiled_kernels():
    (folder,) = re.findall(r"CUDA_CACHE_PATH=(/\S+)/", Path("Dockerfile").read_text())
    (mount,) = SERVICES["replica-gpu"]["tmpfs"]
    assert mount.split(":")[0] == folder
    assert f"uid={USER}" in mount


def test_only_the_balancer_is_reachable_from_outside_and_grafana_from_this_machine():
    reachable = ["balancer", "grafana"]
    assert [name for name, service in SERVICES.items() if "ports" in service] == reachable
    assert [name for name, service in SERVICES.items() if "outside" in service["networks"]] == reachable
    assert SERVICES["grafana"]["ports"] == ["127.0.0.1:3000:3000"]
    assert COMPOSE["networks"]["inside"] == {"internal": True}


def test_grafana_finds_the_dashboard_and_prometheus():
    mounts = [mount.split(":") for service in SERVICES.values() for mount in service.get("volumes", [])]
    assert all(Path("docker", source).is_file() and mode == "ro" for source, _, mode in mounts)
    (source,) = yaml.safe_load(Path("docker/monitoring/datasource.yaml").read_text())["datasources"]
    (provider,) = yaml.safe_load(Path("docker/monitoring/dashboards.yaml").read_text())["providers"]
    assert (source["type"], source["url"]) == ("prometheus", "http://prometheus:9090")
    assert ["./kubernetes/monitoring/dashboard.json", f"{provider['options']['path']}/vit-serve.json", "ro"] in mounts
