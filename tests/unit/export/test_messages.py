"""export/messages.py and the Makefile: who runs make reads its variables, which make turns into options."""

import subprocess

import pytest

from export.messages import BY_MAKE, FLAGS, VARIABLES, worded

OF_FIT = ("images", "method", "from-scratch")


@pytest.mark.parametrize(
    ("sentence", "in_make"),
    [
        ("bundles/a exists; --replace replaces it", "bundles/a exists; REPLACE=yes replaces it"),
        ("--labels FILE names them.", "LABELS=FILE names them."),
        ("--labels: there is no head", "LABELS=: there is no head"),
        ("--out x.pth: the name must end in .safetensors", "OUT=x.pth: the name must end in .safetensors"),
        ("argument --image-size: 3 by 4", "argument IMAGE_SIZE=: 3 by 4"),
        ("such as --set mean=0,0,0 --set heads=1", 'such as OPTIONS="--set mean=0,0,0 --set heads=1"'),
        ("--strict: images, named above: 1", 'OPTIONS="--strict": images, named above: 1'),
    ],
)
def test_options_are_in_the_words_of_who_types_them(monkeypatch, sentence, in_make):
    assert worded(sentence) == sentence
    monkeypatch.setenv(BY_MAKE, "yes")
    assert worded(sentence) == in_make


def made(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What make would run, and its error."""
    command = ["make", "--dry-run", "--no-print-directory", "--assume-old=.venv/.export", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"})


@pytest.mark.parametrize("target", ["export", "fit"])
def test_make_passes_its_variables_and_other_options(target):
    names = [name for name in VARIABLES if (name in OF_FIT) <= (target == "fit")]
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


@pytest.mark.parametrize(
    ("target", "given", "missing"),
    [
        ("export", ["CHECKPOINT=x"], "OUT="),
        ("fit", ["OUT=x"], "IMAGES="),
        ("fit", ["OUT=x", "IMAGES=x"], "CHECKPOINT="),
    ],
)
def test_make_names_a_variable_that_is_missing(target, given, missing):
    done = made(target, *given)
    assert f"make {target} needs {missing}" in done.stderr
    assert done.stdout == ""
