"""The wheel, in an environment that has a module `app` of its own, and in a folder with modules of the user's."""

import json
import subprocess
import sys
import sysconfig
import venv
from functools import partial
from pathlib import Path

import httpx
import pytest

from app.settings import VERSION
from tests.support.server import free_port, is_ready, started

IMPORTS = """
import importlib, pkgutil, sys, vit_serve
for found in pkgutil.walk_packages(vit_serve.__path__, "vit_serve."):
    if "__main__" not in found.name and "resize-" not in found.name:
        importlib.import_module(found.name)
print(*sorted({name.split(".")[0] for name in sys.modules} & {"app", "model", "export", "client", "vit_serve_client"}))
"""
STRANGE = "raise SystemExit('a module of the user was imported')"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """An environment with the wheel, and with all that the tests' own environment has."""
    folder = tmp_path_factory.mktemp("wheel")
    venv.create(folder / ".venv", symlinks=True)
    (packages,) = folder.glob(".venv/lib/python*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    (packages / "app.py").write_text(STRANGE)
    (folder / "random.py").write_text(STRANGE)
    (folder / "model.py").write_text(STRANGE)
    pip = [sys.executable, "-m", "pip", "--python", folder / ".venv", "install", "--quiet", "--retries", "1"]
    done = subprocess.run([*pip, "--no-deps", Path().absolute()], capture_output=True, text=True)
    if "No matching distribution" in done.stderr:
        pytest.skip("pip finds no index of packages")
    assert done.returncode == 0, done.stderr
    return folder


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_is_imported_and_none_lies_outside(installed):
    assert run(installed, ".venv/bin/python", "-P", "-c", IMPORTS) == "\n"
    files = run(installed, ".venv/bin/python", "-P", "-m", "pip", "show", "--files", "vit-serve").splitlines()
    tops = {line.split("/")[0].strip() for line in files if "/" in line and line.startswith("  ")}
    assert {top for top in tops if top != ".."} == {"vit_serve", f"vit_serve-{VERSION}.dist-info"}


@pytest.mark.parametrize("command", ["serve", "export", "inspect", "fit", "judge", "client"])
def test_the_command_has_the_help_of_each(installed, command):
    assert run(installed, ".venv/bin/vit-serve", command, "--help").startswith(f"usage: vit-serve {command} ")


def test_the_demo_is_served_with_its_page(installed, star, monkeypatch):
    port = free_port()
    command = [f"{installed}/.venv/bin/vit-serve", "serve", "--port", str(port)]
    with (
        started(command, port=port, ready=partial(is_ready, port), folder=installed) as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
    ):
        (result,) = client.post("/classify", content=star).json()["results"]
        assert result["predictions"][0]["label"] == "star"
        assert client.get(result["attention"]).headers["content-type"] == "image/png"
        assert all(client.get(path).status_code == 200 for path in ("/", "/page/main.js", "/docs", "/model"))


def test_a_checkpoint_is_exported_and_the_batch_reads_it(installed, star, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(installed / "cache"))
    code = "from vit_serve.exported import bundle_of; print(bundle_of(%r))"
    checkpoint = Path("tests/golden/checkpoints/huggingface-vit").absolute()
    bundle = run(installed, ".venv/bin/python", "-P", "-c", code % str(checkpoint)).splitlines()[-1]
    (installed / "star.jpg").write_bytes(star)
    code = f"""
import json, pathlib
from vit_serve import BatchClassifier
if __name__ == "__main__":
    with BatchClassifier({bundle!r}) as classify:
        print(json.dumps(classify([pathlib.Path("star.jpg").read_bytes()])[0]["predictions"]))
"""
    (best, *_) = json.loads(run(installed, ".venv/bin/python", "-P", "-c", code))
    assert best["label"] in {"cat", "dog", "newt", "owl", "yak"}
