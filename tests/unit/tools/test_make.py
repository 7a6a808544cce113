"""The Makefile and make_variables.py: nothing that is given to make is ignored, and killing make ends the server."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from app.settings import Settings
from export.messages import BY_MAKE, FLAGS, VARIABLES
from make_variables import HELP, SETTING

OF_FIT = ("images", "method", "from-scratch")
OF_JUDGE = ("images", "masks", "limit")
STAND_IN = """#!/bin/sh
echo "$PPID" "$VIT_BUNDLE" "$@"
exec sleep 60
"""


def made(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What make would run, and its error. Everything is installed."""
    installed = [f"--assume-old=.venv/.{name}" for name in ("serve", "export", "dev")]
    return subprocess.run(
        ["make", "--dry-run", "--no-print-directory", *installed, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", **environment},
    )


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ("serve CHECKPOINT=my-model/", "CHECKPOINT is not a variable of make serve, which takes BUNDLE=, PORT=, DEV"
         "ICE=. Export it first: make export CHECKPOINT=... OUT=bundles/NAME"),
        ("serve BUNDEL=bundles/a", "BUNDEL is not a variable of make serve: is BUNDLE meant?"),
        ("serve HOST=0.0.0.0", "HOST is not a variable of make serve: is VIT_HOST meant?"),
        ("serve VIT_MAX_BACH=4", "VIT_MAX_BACH is not a variable of make serve: is VIT_MAX_BATCH meant?"),
        ("export CHECKPOINT=a BUNDLE=b", "OUT= is the bundle to write, and make serve BUNDLE= serves it"),
        ("fit CHECKPOINT=a IMAGES=b OUT=c LABELS=d", "REPLACE=. It is one of make export"),
        ("export CHECKPOINT=a OUT=b REPLACE=true", "REPLACE takes yes, not true"),
        ("check test SECONDS=3", "SECONDS is not a variable of make check test, which takes TESTS_MAY_SKIP="),
        ("test V=1", "Variables for other programs stand before make: V=... make test"),
        ("sreve", "sreve is not a target of make: is serve meant?"),
    ],
)  # fmt: skip
def test_what_would_be_ignored_is_refused(given, refusal):
    done = made(*given.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert refusal in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "environment", "run"),
    [
        (["serve", "BUNDLE=my bundles/a", "PORT=1"], {}, 'VIT_BUNDLE="my bundles/a" VIT_PORT=1  exec'),
        (["serve", "VIT_MAX_BATCH=4", "VIT_PORT=2"], {}, "VIT_PORT=2  exec"),
        (["serve"], {"VIT_PORT": "3", "VIT_X": "", "BUNDEL": "x", "REPLACE": "true"}, "VIT_PORT=3  exec"),
        (["-j4", "-k", "check", "test"], {}, "pytest"),
        (["PYTHON=python3", "PIP_INDEX_URL=https://a", "lint"], {}, "ruff"),
        (["export", "CHECKPOINT=a", "OUT=b", "PROMPT=it's a {} = b", "OPTIONS=--set heads=6"], {}, "--set heads=6"),
        (["export", "CHECKPOINT=a", "OUT=b", "REPLACE=no", "CALIBRATE="], {}, '--out "b"'),
    ],
)
def test_what_is_known_runs(given, environment, run):
    done = made(*given, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert run in done.stdout


@pytest.mark.skipif(Path("/proc/driver/nvidia/version").exists(), reason="this machine has a driver")
def test_nothing_for_a_gpu_is_fetched_without_a_driver(tmp_path):
    done = made("serve", "DEVICE=cuda", f"VENV={tmp_path}")
    assert "there is no NVIDIA driver here, so 2.9 GB for a GPU are not installed" in done.stderr
    assert "pip install" not in done.stdout


def test_nothing_of_a_value_or_a_name_is_run(tmp_path):
    made("serve", f"A$(touch {tmp_path}/a)`touch {tmp_path}/b`;touch {tmp_path}/c=1", f"BUNDLE=';touch {tmp_path}/d")
    assert list(tmp_path.iterdir()) == []


def test_the_settings_are_those_of_the_service():
    assert SETTING.findall(Path("app/settings.py").read_text()) == [*Settings.model_fields]


def test_every_variable_that_a_recipe_uses_is_in_the_help_of_its_target():
    text = Path("Makefile").read_text()
    helped = dict(HELP.findall(text))
    defined = {*re.findall(r"^([A-Z_]+) :?=", text, re.MULTILINE), "MAKEFILE_LIST"}
    recipes = re.findall(r"^([a-z-]+):.*## .*\n((?:\t.*\n)+)", text, re.MULTILINE)
    used = {(target, name) for target, recipe in recipes for name in re.findall(r"\$\(([A-Z_]+)\)", recipe)}
    assert {
        (target, name) for target, name in used if name not in defined and f"{name}=" not in helped[target]
    } == set()
    assert ("serve", "BUNDLE") in used


@pytest.mark.parametrize("target", ["export", "fit"])
def test_make_passes_its_variables_and_other_options(target):
    names = [name for name in VARIABLES if name not in (*OF_FIT, *OF_JUDGE, "bundle")]
    if target == "fit":
        names = ["out", "image-size", *OF_FIT]
    given = {name.upper().replace("-", "_"): f"{name}-given" for name in names}
    flags = FLAGS if target == "export" else ("replace",)
    on = [f"{flag.upper()}=yes" for flag in flags]
    others = [*(f"{name}={value}" for name, value in given.items()), "OPTIONS=--set heads=6"]
    (line,) = made(target, *others, *on).stdout.splitlines()
    words = line.replace('"', "").split()
    assert words[:4] == [f"{BY_MAKE}=yes", ".venv/bin/python", "-m", "export"]
    assert all(f"--{name} {name}-given" in " ".join(words) for name in names)
    assert {f"--{flag}" for flag in flags} <= set(words)
    assert words[-2:] == ["--set", "heads=6"]
    off = made(target, *others, *(f"{flag.upper()}=no" for flag in flags)).stdout
    assert not {f"--{flag}" for flag in flags} & set(off.split())


def test_make_judges_a_bundle_with_all_that_is_given():
    (line,) = made("judge", "BUNDLE=my a", *(f"{name.upper()}={name}-given" for name in OF_JUDGE)).stdout.splitlines()
    command = f'{BY_MAKE}=yes .venv/bin/python -m export judge "my a" --images "images-given" --masks "masks-given"'
    assert line == f"{command} --limit limit-given"


@pytest.mark.parametrize(
    ("target", "given", "missing"),
    [
        ("export", ["CHECKPOINT=x"], "OUT="),
        ("fit", ["OUT=x", "IMAGES=x"], "CHECKPOINT="),
    ],
)
def test_make_names_a_variable_that_is_missing(target, given, missing):
    done = made(target, *given)
    assert f"make {target} needs {missing}" in done.stderr
    assert done.stdout == ""


def test_make_has_the_server_as_its_child_and_hands_sigterm_on(tmp_path):
    """It hands SIGTERM on to its children, and a shell between them would end alone."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(STAND_IN)
    python.chmod(0o755)
    command = ["make", "--silent", f"--assume-old={tmp_path}/.serve", "serve", f"VENV={tmp_path}", "BUNDLE=my a"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL) as make:
        assert make.stdout
        assert make.stdout.readline() == f"{make.pid} my a -m app\n"
        make.send_signal(signal.SIGTERM)
        assert make.stdout.read() == ""  # the pipe ends when the server is gone too
    assert make.returncode == -signal.SIGTERM
