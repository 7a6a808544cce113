"""compose.yaml agrees with the service, and gives no container more than it needs."""

from pathlib import Path

import pytest
import yaml

from app.settings import Settings

COMPOSE = yaml.safe_load(Path("docker/compose.yaml").read_text())
SERVICES = COMPOSE["services"]


def test_a_container_has_no_permission_that_it_does_not_need_and_only_two_are_reachable():
    """The balancer from outside, and Grafana from this machine."""
    for service in SERVICES.values():
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert {"cpus", "memory", "pids"} <= set(service["deploy"]["resources"]["limits"])
    reachable = ["balancer", "grafana"]
    assert [name for name, service in SERVICES.items() if "ports" in service] == reachable
    assert [name for name, service in SERVICES.items() if "outside" in service["networks"]] == reachable
    assert SERVICES["grafana"]["ports"] == ["127.0.0.1:3000:3000"]
    assert COMPOSE["networks"]["inside"] == {"internal": True}


@pytest.mark.parametrize("name", ["replica", "replica-gpu"])
def test_a_replica_has_known_settings_and_time_to_drain_and_is_found_by_its_alias(name):
    assert {key.removeprefix("VIT_").lower() for key in SERVICES[name]["environment"]} <= set(Settings.model_fields)
    assert SERVICES[name]["environment"]["VIT_API_KEYS"] is None  # that of the shell, and left out where that has none
    assert int(SERVICES[name]["stop_grace_period"][:-1]) > Settings().drain_delay_s + Settings().drain_timeout_s
    (alias,) = SERVICES[name]["networks"]["inside"]["aliases"]
    for file in ("nginx.conf", "haproxy.cfg"):
        assert f" {alias}:{Settings().port} " in Path("docker", file).read_text()
    (scrape,) = yaml.safe_load(Path("docker/monitoring/prometheus.yaml").read_text())["scrape_configs"]
    (asked,) = scrape["dns_sd_configs"]
    assert (asked["names"], asked["port"]) == ([alias], int(SERVICES[name]["environment"]["VIT_METRICS_PORT"]))
