"""vit_serve/extra.py: the command that adds an extra, from where the package came."""

import json
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

from vit_serve import extra

GIT = {"url": "https://host/it.git", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}}


@pytest.mark.parametrize(
    ("origin", "needs"),
    [
        (None, "'vit-serve[export]'"),
        ({"url": "file:///a/vit_serve.whl", "archive_info": {}}, "'vit-serve[export] @ file:///a/vit_serve.whl'"),
        (GIT, "'vit-serve[export] @ git+https://host/it.git@c0ffee'"),
    ],
)
def test_an_extra_comes_from_where_the_package_came(monkeypatch, origin, needs):
    record = SimpleNamespace(read_text=lambda name: origin and json.dumps(origin))
    monkeypatch.setattr(extra, "distribution", lambda name: record)
    assert extra.installing("export") == f"pip install {needs}"


def test_in_a_clone_it_comes_from_there(monkeypatch):
    def distribution(name):
        raise PackageNotFoundError

    monkeypatch.setattr(extra, "distribution", distribution)
    assert extra.installing("otel") == f"pip install 'vit-serve[otel] @ {Path.cwd().as_uri()}'"
