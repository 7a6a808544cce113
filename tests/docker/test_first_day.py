"""The first day of docs/deployment.md: its commands fit the components, and the service takes what these give it."""

import asyncio
import base64
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.bundle import load_bundle
from app.door.keys import read_keys
from app.settings import Settings
from app.stores.redis import RedisStore
from tests.support.manifests import FOLDER, Resources, container, pod, validate
from tests.support.pages import block
from tests.support.server import Server, free_port, started

PAGE = block("first day", Path("docs/deployment.md"))
FILLER = yaml.safe_load((FOLDER / "bundle-volume/fill.yaml").read_text())
VALUES_TEXT = (FOLDER / "site/values.yaml").read_text()
VALUES = yaml.safe_load(VALUES_TEXT)["data"]
DOCKERFILE = Path("Dockerfile").read_text()
COMPONENTS = re.findall(r"^  # - \.\./(.+)$", (FOLDER / "site/kustomization.yaml").read_text(), re.MULTILINE)
PASSWORD = "5ec3e7"

Site = Callable[..., Resources]


@pytest.fixture
def folder(tmp_path) -> Path:
    """A copy of all manifests."""
    return Path(shutil.copytree(FOLDER, tmp_path / "kubernetes"))


@pytest.fixture
def site(build, folder) -> Site:
    """The site, or what is built upon it, with these components: `site("keys", base="../gpu")`."""

    def built(*components: str, base: str = "../base", of: str = "site") -> Resources:
        kustomization = folder / "site/kustomization.yaml"
        text = (FOLDER / "site/kustomization.yaml").read_text().replace("../base", base)
        for name in components:
            text = text.replace(f"  # - ../{name}\n", f"  - ../{name}\n")
        kustomization.write_text(text)
        return build(folder / of)

    return built


def commands(text: str = PAGE, *, start: str = "") -> list[list[str]]:
    """The words of each command that starts so."""
    lines = re.findall(r"^#? +((?:docker|kubectl|echo|curl) .*)$", text, re.MULTILINE)
    return [shlex.split(line) for line in lines if line.startswith(start)]


def commands_of(file: str) -> list[list[str]]:
    """Those in the comment at its head."""
    return commands((FOLDER / file).read_text())


def variable(found: dict[str, Any], name: str) -> Any:
    """The value of a variable, or where it comes from."""
    (given,) = (variable for variable in found["env"] if variable["name"] == name)
    return given.get("value", given)


def mount(found: dict[str, Any], name: str) -> str:
    """Where a container has a volume, to which it cannot write."""
    (given,) = (mount for mount in found["volumeMounts"] if mount["name"] == name)
    assert given["readOnly"]
    return str(given["mountPath"])


def volume(resources: Resources, name: str) -> dict[str, Any]:
    (given,) = (volume for volume in pod(resources)["volumes"] if volume["name"] == name)
    return {key: value for key, value in given.items() if key != "name"}


def test_the_page_names_every_component_and_every_folder_has_its_place():
    assert set(COMPONENTS) | {"gpu", "base", "monitoring", "keda"} == set(re.findall(r"`\.\./([\w-]+)`", PAGE))
    others = {"site", "kserve", "canary", "models"}
    assert {path.name for path in FOLDER.iterdir()} == {"gpu", "base", "monitoring", "keda", *COMPONENTS, *others}


def test_what_the_commands_name_is_there():
    words = {word for command in (*commands(), *commands_of("bundle-volume/fill.yaml")) for word in command}
    assert [word for word in words if word.startswith("docker/") and not Path(word).exists()] == []
    for command in commands(start="docker build"):
        options = dict(pairwise(command))
        assert "--target" not in options or f" AS {options['--target']}\n" in DOCKERFILE
        assert "--build-arg" not in options or f"\nARG {options['--build-arg'].partition('=')[0]}" in DOCKERFILE
    pushed = {words[-1] for words in commands(start="docker push")}
    assert {words[words.index("-t") + 1] for words in commands(start="docker build")} == pushed
    assert VALUES["bundle-image"] in pushed


def test_a_label_lets_a_namespace_in(site):
    labels = [words[-1].split("=") for words in commands(start="kubectl label namespace")]
    rules = site()["NetworkPolicy", "vit-serve"]["spec"]["ingress"]
    allowed = [rule["from"][0]["namespaceSelector"]["matchLabels"] for rule in rules]
    assert [{name: value} for name, value in labels] == allowed


@pytest.mark.parametrize("of", ["site", "canary"])
def test_all_components_together_are_valid(site, of):
    for resource in site(*COMPONENTS, base="../gpu", of=of).values():
        validate(resource)


def test_the_keys_of_the_page_are_keys_of_the_service(site, need, tmp_path):
    lines = re.findall(r"^    (echo .*keys\.txt)$", PAGE, re.MULTILINE)
    (create,) = (words for words in commands(start="kubectl create secret generic") if "keys.txt" in words[-1])
    need("openssl")
    subprocess.run(lines[0], shell=True, check=True, cwd=tmp_path)
    command = [need("kubectl"), *create[1:], "--dry-run=client", "-o", "yaml"]
    secret = yaml.safe_load(subprocess.run(command, check=True, capture_output=True, cwd=tmp_path).stdout)
    resources = site("keys")
    assert volume(resources, "keys") == {"secret": {"secretName": secret["metadata"]["name"]}}
    file = Path(variable(container(resources), "VIT_API_KEYS_FILE"))
    assert file.parent == Path(mount(container(resources), "keys"))
    (tmp_path / file.name).write_bytes(base64.b64decode(secret["data"][file.name]))
    names = read_keys(None, Settings(api_keys_file=tmp_path / file.name).api_keys_file)
    assert list(names.values()) == ["mine"]


def test_the_ingress_leads_to_the_service_and_repeats_its_limits(site):
    resources = site("ingress")
    ingress = resources["Ingress", "vit-serve"]
    (rule,), (tls,) = ingress["spec"]["rules"], ingress["spec"]["tls"]
    assert (rule["host"], tls) == (VALUES["host"], {"hosts": [VALUES["host"]], "secretName": VALUES["tls-secret"]})
    assert ingress["spec"]["ingressClassName"] == VALUES["ingress-class"]
    assert any(VALUES["tls-secret"] in words for words in commands(start="kubectl create secret tls"))
    backend = rule["http"]["paths"][0]["backend"]["service"]
    ports = resources["Service", backend["name"]]["spec"]["ports"]
    assert backend["port"]["name"] in [port["name"] for port in ports]
    said = {name.partition("/")[2]: value for name, value in ingress["metadata"]["annotations"].items()}
    assert said["proxy-body-size"] == f"{Settings().max_upload_bytes // 2**20}m"
    assert float(said["proxy-read-timeout"]) > Settings().request_timeout_s
    nginx = Path("docker/nginx.conf").read_text()
    for name in ("proxy-next-upstream", "proxy-next-upstream-tries"):
        assert f"{name.replace('-', '_')} {said[name]};" in nginx


def test_a_bundle_is_copied_from_an_image_to_where_the_service_looks(site, tmp_path):
    resources = site("bundle-image")
    (copier,) = pod(resources)["initContainers"]
    assert copier["image"] == VALUES["bundle-image"]
    assert copier["securityContext"] == container(resources)["securityContext"]
    assert f"VIT_BUNDLE={mount(container(resources), 'bundle')} " in DOCKERFILE
    source, target = copier["command"][-2:]
    assert "COPY ${BUNDLE} " + source.removesuffix("/.") in DOCKERFILE
    assert copier["volumeMounts"] == [{"name": "bundle", "mountPath": target}]
    assert volume(resources, "bundle") == {"emptyDir": {}}
    shutil.copytree("app/demo", tmp_path / source.strip("/."))
    (tmp_path / target.strip("/")).mkdir()
    command = [word.replace("/", f"{tmp_path}/", 1) if word.startswith("/") else word for word in copier["command"]]
    subprocess.run(["sh", "-c", shlex.join(command)], check=True)
    load_bundle(tmp_path / target.strip("/")).check_files()


def test_a_bundle_is_read_from_the_folder_of_a_volume_that_a_command_fills(site):
    resources = site("bundle-volume")
    claim = resources["PersistentVolumeClaim", "bundles"]["metadata"]
    assert volume(resources, "bundles") == {"persistentVolumeClaim": {"claimName": claim["name"], "readOnly": True}}
    path = variable(container(resources), "VIT_BUNDLE")
    assert path == VALUES["bundle-folder"]
    assert Path(path).parent == Path(mount(container(resources), "bundles"))
    (copy,) = (words for words in commands_of("bundle-volume/fill.yaml") if words[:2] == ["kubectl", "cp"])
    assert copy[-1] == f"{claim['namespace']}/{FILLER['metadata']['name']}:{path}"


def test_the_pod_that_fills_a_volume_may_do_no_more_than_a_replica(site):
    validate(FILLER)
    (filler,) = FILLER["spec"]["containers"]
    resources = site("bundle-volume")
    assert filler["volumeMounts"] == [{"name": "bundles", "mountPath": mount(container(resources), "bundles")}]
    (claimed,) = FILLER["spec"]["volumes"]
    assert claimed["persistentVolumeClaim"] == {"claimName": "bundles"}
    assert filler["securityContext"] == container(resources)["securityContext"]
    user = pod(resources)["securityContext"]
    assert FILLER["spec"]["securityContext"] == user | {"fsGroup": user["runAsGroup"]}


@pytest.fixture
def redis(site, need) -> Iterator[Server]:
    """Redis as its container starts it with a password."""
    served, port = container(site("redis-password"), "redis"), free_port()
    assert [found["name"] for found in served["env"]] == ["REDISCLI_AUTH"]
    arguments = [word.replace("$(REDISCLI_AUTH)", PASSWORD) for word in served["args"]]
    command = [need("redis-server"), *arguments, "--port", str(port)]
    program, *question = served["readinessProbe"]["exec"]["command"]
    ask = partial(subprocess.run, [need(program), "-p", str(port), *question], capture_output=True)
    with started(command, port=port, ready=lambda: b"PONG" in ask(env={"REDISCLI_AUTH": PASSWORD}).stdout) as server:
        assert b"NOAUTH" in ask().stdout
        yield server


def test_the_service_reaches_a_redis_with_a_password(site, redis, metrics):
    secrets = {words[4]: words[-1] for words in commands(start="kubectl create secret generic")}
    reference = {"secretKeyRef": {"name": "redis", "key": "password"}}
    assert secrets["redis"].startswith(f"--from-literal={reference['secretKeyRef']['key']}=")
    resources = site("redis-password")
    assert container(resources, "redis")["env"][0]["valueFrom"] == reference
    names = [found["name"] for found in container(resources)["env"]]
    assert names.index("REDIS_PASSWORD") < names.index("VIT_STORE")  # Kubernetes expands only what stands before
    assert variable(container(resources), "REDIS_PASSWORD")["valueFrom"] == reference
    ((given, with_password),) = re.findall(r"^  store: (\S+) # with \S+ (\S+)$", VALUES_TEXT, re.MULTILINE)
    assert with_password.replace(":$(REDIS_PASSWORD)@", "") == given
    url = with_password.replace("$(REDIS_PASSWORD)", PASSWORD).replace("redis:6379", f"127.0.0.1:{redis.port}")

    async def comes_back() -> bytes | None:
        settings = Settings(store=url, store_timeout_s=2)
        store = RedisStore(settings=settings, namespace="model", metrics=metrics)
        assert await store.keep("key", b"value")
        found = await store.find("key")
        await store.close()
        return found

    assert asyncio.run(comes_back()) == b"value"


def test_replicas_go_to_the_nodes_that_the_commands_set_apart(site):
    label, taint = (words[-1].partition(":") for words in commands_of("nodes/kustomization.yaml"))
    resources = site("nodes", base="../gpu")
    assert label[0].split("=") in [[*item] for item in pod(resources)["nodeSelector"].items()]
    (key, _), effect = taint[0].split("="), taint[2]
    tolerations = pod(resources)["tolerations"]
    assert {"key": key, "operator": "Exists", "effect": effect} in tolerations
    assert [found for found in pod(site(base="../gpu"))["tolerations"] if found not in tolerations] == []


def test_a_canary_is_a_replica_of_the_site_with_another_bundle(site, folder):
    whole = site(*COMPONENTS)
    file = folder / "canary/kustomization.yaml"
    file.write_text(re.sub(r"# (?=env:|initContainers:)", "", file.read_text()))  # as its comments say
    canary = site(*COMPONENTS, of="canary")
    (name,) = canary  # nothing else of the site is applied or deleted with it
    assert name == ("Deployment", "vit-serve-canary")
    assert canary[name]["spec"]["replicas"] == 1
    template, usual = canary[name]["spec"]["template"], whole["Deployment", "vit-serve"]["spec"]["template"]
    for policy in ("Service", "NetworkPolicy", "PodDisruptionBudget"):
        spec = whole[policy, "vit-serve"]["spec"]
        selector = spec.get("podSelector") or spec["selector"]
        assert selector.get("matchLabels", selector).items() <= template["metadata"]["labels"].items()
    mine = canary[name]["spec"]["selector"]["matchLabels"]
    assert not mine.items() <= usual["metadata"]["labels"].items()
    assert mine.items() <= template["metadata"]["labels"].items()
    found, before = template["spec"]["containers"][0], usual["spec"]["containers"][0]
    (copier,), (copier_before,) = template["spec"]["initContainers"], usual["spec"]["initContainers"]
    assert (found.pop("image"), copier.pop("image")) == ("registry.example/vit-serve:2", "registry.example/mine:2")
    assert (before.pop("image"), copier_before.pop("image")) == (VALUES["image"], VALUES["bundle-image"])
    changed, variables = ({v["name"]: v for v in served.pop("env")} for served in (found, before))
    assert changed == variables | {"VIT_BUNDLE": {"name": "VIT_BUNDLE", "value": "/bundles/mine-2"}}
    assert template["spec"] == usual["spec"]
