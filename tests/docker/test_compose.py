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
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {"cpus", "memory", "pids"} <= set(service["deploy"]["resources"]["limits"])


@pytest.mark.parametrize("name", REPLICAS)
def test_every_variable_is_a_setting(name):
    assert {key.removeprefix("VIT_").lower() for key in SERVICES[name]["environment"]} <= set(Settings.model_fields)


@pytest.mark.parametrize("name", REPLICAS)
def test_a_replica_has_time_to_drain(name):
    settings = Settings()
    assert int(SERVICES[name]["stop_grace_period"][:-1]) > settings.drain_delay_s + settings.drain_timeout_s


@pytest.mark.parametrize("name", REPLICAS)
def test_balancers_find_replicas_by_their_alias(name):
    (alias,) = SERVICES[name]["networks"]["inside"]["aliases"]
    for file in ("nginx.conf", "haproxy.cfg"):
        assert f" {alias}:{Settings().port} " in Path("docker", file).read_text()


def test_there_is_a_profile_for_each_device_and_one_is_the_default():
    assert [SERVICES[name]["profiles"] for name in REPLICAS] == [["cpu"], ["gpu"]]
    assert Path("docker/.env").read_text() == "COMPOSE_PROFILES=cpu\n"
    assert SERVICES["replica-gpu"]["build"]["args"]["DEVICE"] == "cuda"


def test_a_replica_on_a_gpu_can_keep_compiled_kernels():
    (folder,) = re.findall(r"CUDA_CACHE_PATH=(/\S+)/", Path("Dockerfile").read_text())
    (mount,) = SERVICES["replica-gpu"]["tmpfs"]
    assert mount.split(":")[0] == folder
    assert f"uid={USER}" in mount


def test_only_the_balancer_is_reachable_from_outside():
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["balancer"]
    assert [name for name, service in SERVICES.items() if "outside" in service["networks"]] == ["balancer"]
    assert COMPOSE["networks"]["inside"] == {"internal": True}


def test_redis_makes_room_instead_of_refusing():
    command = SERVICES["redis"]["command"]
    assert command[command.index("--maxmemory-policy") + 1] == "allkeys-lru"
    assert "--maxmemory" in command
