"""The first day of docs/deployment.md: its commands fit the components, and the service takes what these give it."""

import asyncio
import base64
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.bundle import load_bundle
from app.http.keys import read_keys
from app.settings import Settings
from app.stores.redis import RedisStore
from tests.support.manifests import FOLDER, container, pod, variables
from tests.support.pages import block
from tests.support.server import Server, free_port, started

PAGE = block("first day", Path("docs/deployment.md"))
VALUES = (FOLDER / "site/values.yaml").read_text()
DOCKERFILE = Path("Dockerfile").read_text()
PASSWORD = "5ec3e7"


def commands(start: str, text: str = PAGE) -> list[list[str]]:
    """The words of each command that starts so."""
    lines = re.findall(r"^#? +((?:docker|kubectl|echo|curl) .*)$", text, re.MULTILINE)
    return [shlex.split(line) for line in lines if line.startswith(start)]


def mount(found: dict[str, Any], name: str) -> str:
    """Where a container has a volume, to which it cannot write."""
    (given,) = (mount for mount in found["volumeMounts"] if mount["name"] == name)
    assert given["readOnly"]
    return str(given["mountPath"])


def test_what_the_commands_name_is_there():
    words = {word for start in ("docker", "kubectl") for command in commands(start) for word in command}
    assert [word for word in words if word.startswith("docker/") and not Path(word).exists()] == []
    for command in commands("docker build"):
        options = dict(pairwise(command))
        assert "--target" not in options or f" AS {options['--target']}\n" in DOCKERFILE
        assert "--build-arg" not in options or f"\nARG {options['--build-arg'].partition('=')[0]}" in DOCKERFILE


def test_the_keys_of_the_page_are_keys_of_the_service(site, need, tmp_path):
    lines = re.findall(r"^    (echo .*keys\.txt)$", PAGE, re.MULTILINE)
    (create,) = (words for words in commands("kubectl create secret generic") if "keys.txt" in words[-1])
    need("openssl")
    subprocess.run(lines[0], shell=True, check=True, cwd=tmp_path)
    command = [need("kubectl"), *create[1:], "--dry-run=client", "-o", "yaml"]
    secret = yaml.safe_load(subprocess.run(command, check=True, capture_output=True, cwd=tmp_path).stdout)
    resources = site("keys")
    (volume,) = (one for one in pod(resources)["volumes"] if one["name"] == "keys")
    assert volume["secret"] == {"secretName": secret["metadata"]["name"]}
    file = Path(variables(container(resources))["VIT_API_KEYS_FILE"])
    assert file.parent == Path(mount(container(resources), "keys"))
    (tmp_path / file.name).write_bytes(base64.b64decode(secret["data"][file.name]))
    names = read_keys(None, Settings(api_keys_file=tmp_path / file.name).api_keys_file)
    assert list(names.values()) == ["mine"]


def test_a_bundle_is_copied_from_an_image_to_where_the_service_looks(site, tmp_path):
    resources = site("bundle-image")
    (copier,) = pod(resources)["initContainers"]
    assert f"VIT_BUNDLE={mount(container(resources), 'bundle')} " in DOCKERFILE
    source, target = copier["command"][-2:]
    assert "COPY ${BUNDLE} " + source.removesuffix("/.") in DOCKERFILE
    assert copier["volumeMounts"] == [{"name": "bundle", "mountPath": target}]
    shutil.copytree("app/demo", tmp_path / source.strip("/."))
    (tmp_path / target.strip("/")).mkdir()
    command = [word.replace("/", f"{tmp_path}/", 1) if word.startswith("/") else word for word in copier["command"]]
    subprocess.run(["sh", "-c", shlex.join(command)], check=True)
    load_bundle(tmp_path / target.strip("/")).check_files()


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
    secrets = {words[4]: words[-1] for words in commands("kubectl create secret generic")}
    reference = {"secretKeyRef": {"name": "redis", "key": "password"}}
    assert secrets["redis"].startswith(f"--from-literal={reference['secretKeyRef']['key']}=")
    resources = site("redis-password")
    assert container(resources, "redis")["env"][0]["valueFrom"] == reference
    given_to_service = variables(container(resources))
    names = [*given_to_service]
    assert names.index("REDIS_PASSWORD") < names.index("VIT_STORE")  # Kubernetes expands only what stands before
    assert given_to_service["REDIS_PASSWORD"]["valueFrom"] == reference
    ((given, with_password),) = re.findall(r"^  store: (\S+) # with \S+ (\S+)$", VALUES, re.MULTILINE)
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
