"""vit_serve/exported.py: a checkpoint is exported once, and again when it is another."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from app.settings import DEMO_BUNDLE
from vit_serve import exported
from vit_serve.exported import bundle_of


@pytest.fixture
def exports(monkeypatch, tmp_path):
    """The checkpoints that were exported, by a stand-in. One called `bad` cannot be."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ran = []

    def run(command, **_):
        checkpoint, out = command[-3], Path(command[-1])
        ran.append(checkpoint)
        if checkpoint.endswith("bad"):
            return subprocess.CompletedProcess(command, 1)
        out.mkdir(parents=True)
        shutil.copy(DEMO_BUNDLE / "manifest.json", out)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    return ran


def test_a_bundle_is_served_as_it_is(exports):
    assert bundle_of(str(DEMO_BUNDLE)) == DEMO_BUNDLE
    assert exports == []


def test_a_checkpoint_is_exported_when_it_is_new(exports, tmp_path, monkeypatch):
    file = tmp_path / "tuned.safetensors"
    file.write_bytes(b"1")
    first = bundle_of(str(file))
    assert first.name == "tuned"
    assert first.is_relative_to(tmp_path / "cache/vit-serve")
    monkeypatch.chdir(tmp_path)
    assert bundle_of(file.name) == first
    assert len(exports) == 1
    os.utime(file, (1, 1))
    second = bundle_of(str(file))
    monkeypatch.setattr(exported, "VERSION", "9.9.9")
    third = bundle_of(str(file))
    assert [bundle.exists() for bundle in (first, second, third)] == [False, False, True]


def test_a_name_of_the_hub_with_its_revision_is_a_checkpoint(exports):
    bundles = {bundle_of(name) for name in ("hf://org/name", "hf://org/name@v1", "hf://other/name", "hf://org/name")}
    assert [bundle.name for bundle in bundles if bundle.exists()] == ["name"] * 3
    assert len(exports) == 3


def test_what_cannot_be_exported_ends_with_the_status_of_the_export(exports, tmp_path, capsys):
    (tmp_path / "bad").touch()
    for name in ("hf://bad", str(tmp_path / "bad")):
        with pytest.raises(SystemExit) as ended:
            bundle_of(name)
        assert ended.value.code == 1
    assert capsys.readouterr().err == (
        f"Options go to `vit-serve export --checkpoint {tmp_path}/bad --out FOLDER`. Then serve FOLDER.\n"
    )


@pytest.mark.parametrize("name", ["nosuch", "empty"])
def test_nothing_is_announced_where_there_is_nothing_to_export(exports, tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    with pytest.raises(SystemExit, match=f"^not served: {name} "):
        bundle_of(name)
    assert (exports, capsys.readouterr().out) == ([], "")
