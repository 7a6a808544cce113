"""What is installed, and where it can be. Run `make lock` after a change of constraints.txt or pyproject.toml."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

CONSTRAINTS = dict(line.split("==") for line in Path("constraints.txt").read_text().split())
PINS = {canonicalize_name(name): version for name, version in CONSTRAINTS.items()}
PYTHONS = ("3.11", "3.14")  # the oldest and the newest
RUNTIMES = {  # the one package that brings ONNX Runtime, by the platform as uv calls it
    "x86_64-unknown-linux-gnu": "onnxruntime-gpu",
    "aarch64-manylinux_2_35": "onnxruntime-gpu",  # OpenVINO's wheel needs glibc 2.35: Debian 12, Ubuntu 22.04
    "aarch64-apple-darwin": "onnxruntime",
}
OLDEST_MACOS = {"MACOSX_DEPLOYMENT_TARGET": "14.0"}  # of onnxruntime's wheel
UNREACHABLE = re.compile(r"error sending request|dns error|Could not connect|[Cc]onnection refused|timed out")


def locked(device: str) -> dict[str, str]:
    text = Path(f"docker/requirements-{device}.lock").read_text()
    entries = re.findall(r"^(\S+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.MULTILINE)
    assert len(entries) == text.count("==")
    return {name: version for name, version, _ in entries}


def test_the_cuda_image_adds_cuda_and_leaves_out_the_engine_for_cpus():
    cpu, cuda = locked("cpu"), locked("cuda")
    assert cpu.keys() - cuda.keys() == {"openvino", "openvino-telemetry"}
    assert {name: cuda.get(name, version) for name, version in cpu.items()} == cpu
    assert all(name.startswith("nvidia-") for name in cuda.keys() - cpu)


def resolved(python: str, platform: str, *groups: str) -> dict[str, str]:
    """Versions of the wheels that an installation would take. Skips where no package index can be reached."""
    command = [
        *(sys.executable, "-m", "uv", "pip", "compile", "--constraint", "constraints.txt", "--quiet"),
        *("--python-version", python, "--python-platform", platform, "--only-binary", ":all:"),
        *("--no-python-downloads", "--no-header", "--no-annotate"),
        *(part for group in groups for part in ("--group", f"pyproject.toml:{group}")),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env={**os.environ, **OLDEST_MACOS})
    if done.returncode and UNREACHABLE.search(done.stderr):
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"^(\S+?)==([^ ;\n]+)", done.stdout, re.MULTILINE)
    return {re.sub(r"\[.*", "", name): version for name, version in lines}


@pytest.mark.parametrize("platform", RUNTIMES)
@pytest.mark.parametrize("python", PYTHONS)
def test_everything_has_wheels_there_and_one_onnx_runtime(python, platform):
    found = resolved(python, platform, "dev", "cuda")  # the other groups too
    assert {name for name in found if name.startswith("onnxruntime")} == {RUNTIMES[platform]}
    assert {"torch", "fastapi", "pillow"} <= found.keys()
    assert {name: PINS.get(name, version) for name, version in found.items()} == found


@pytest.mark.parametrize("platform", [platform for platform in RUNTIMES if "linux" in platform])
def test_the_image_for_cpus_has_what_the_service_needs_on_both_processors_and_nothing_else(platform):
    assert resolved("3.11", platform, "serve") == locked("cpu")
