"""What is installed, and where it can be. Run `make lock` after a change of constraints.txt or pyproject.toml."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CONSTRAINTS = dict(line.split("==") for line in Path("constraints.txt").read_text().split())
PINS = {canonicalize_name(name): version for name, version in CONSTRAINTS.items()}
OLDEST = {"sys_platform": "linux", "python_version": "3.11", "python_full_version": "3.11.0"}
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
RUNTIMES = {  # the one package that brings ONNX Runtime, by the platform as uv calls it
    "x86_64-unknown-linux-gnu": "onnxruntime-gpu",
    "aarch64-manylinux_2_34": "onnxruntime-gpu",  # its wheel needs glibc 2.34: Debian 12, Ubuntu 22.04, RHEL 9
    "aarch64-apple-darwin": "onnxruntime",
}
OLDEST_MACOS = {"MACOSX_DEPLOYMENT_TARGET": "14.0"}  # of onnxruntime's wheel
UNREACHABLE = re.compile(r"error sending request|dns error|Could not connect|[Cc]onnection refused|timed out")
GROUPS = tomllib.loads(Path("pyproject.toml").read_text())["dependency-groups"]


def locked(device: str) -> dict[str, str]:
    text = Path(f"docker/requirements-{device}.lock").read_text()
    entries = re.findall(r"^(\S+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.MULTILINE)
    assert len(entries) == text.count("==")
    return {name: version for name, version, _ in entries}


def closure(requirements: list[Requirement], extra: str = "") -> set[str]:
    """Names of all packages that the requirements install on Linux with the oldest Python, as far as installed here."""
    found: set[str] = set()
    waiting = [(requirement, extra) for requirement in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra, **OLDEST}):
            continue
        name = canonicalize_name(requirement.name)
        if name not in found or requirement.extras:
            found.add(name)
            for wanted in ("", *requirement.extras):
                waiting += [
                    (Requirement(line), wanted) for line in requirements_of(name) if "extra ==" in line or not wanted
                ]
    return found


def requirements_of(name: str) -> list[str]:
    try:
        return requires(name) or []
    except PackageNotFoundError:  # needed only by an older Python than this one
        return []


def test_the_cpu_image_has_what_the_service_needs_and_nothing_else():
    serve = [Requirement(line) for line in GROUPS["serve"]]
    assert set(locked("cpu")) == closure(serve)


def test_the_cuda_image_adds_only_cuda():
    cpu, cuda = locked("cpu"), locked("cuda")
    assert cpu.items() <= cuda.items()
    assert all(name.startswith("nvidia-") for name in cuda.keys() - cpu)
    assert {"nvidia-cudnn-cu13", "nvidia-cufft", "nvidia-cublas"} <= cuda.keys()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_versions_are_those_that_were_tested(device):
    assert {name: PINS.get(name, version) for name, version in locked(device).items()} == locked(device)


def test_no_pin_is_missing_from_what_was_tested():
    assert set(locked("cpu")) <= set(PINS)


def resolved(python: str, platform: str, *groups: str) -> dict[str, str]:
    """Versions of the wheels that an installation there would take. Skips where no package index can be reached."""
    command = [
        *(sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", "--constraint", "constraints.txt", "--quiet"),
        *("--python-version", python, "--python-platform", platform, "--only-binary", ":all:", "--no-header"),
        *("--no-annotate", *(part for group in groups for part in ("--group", group))),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env={**os.environ, **OLDEST_MACOS})
    if done.returncode and UNREACHABLE.search(done.stderr):
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr
    return {
        re.sub(r"\[.*", "", name): version for name, version in re.findall(r"^(\S+?)==([^ ;\n]+)", done.stdout, re.M)
    }


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("platform", RUNTIMES)
def test_everything_has_wheels_there_and_one_onnx_runtime(python, platform):
    found = resolved(python, platform, "dev", "cuda")  # these two include the others
    assert {name for name in found if name.startswith("onnxruntime")} == {RUNTIMES[platform]}
    assert {"torch", "fastapi", "pillow"} <= found.keys()
    assert {name: PINS.get(name, version) for name, version in found.items()} == found


@pytest.mark.parametrize("platform", [platform for platform in RUNTIMES if "linux" in platform])
def test_the_image_for_cpus_has_wheels_on_both_processors(platform):
    assert resolved("3.11", platform, "serve") == locked("cpu")
