"""model/checkpoints/hub.py against a small server that answers as the Hub does."""

import json
import os
import sys
import threading
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.hub import fetch
from tests.support.altered import GOLDEN
from tests.support.runs import same_weights

COMMIT = "c" * 40


class Hub(BaseHTTPRequestHandler):
    """/api/models/NAME[/revision/REV], /api/models/NAME/tree/COMMIT and /NAME/resolve/COMMIT/FILE of some folders."""

    folders: dict[str, Path]
    fetched: list[str]

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = self.path.partition("?")[0].removeprefix("/api/models").strip("/")
        name = "/".join(path.split("/")[:2])
        if name not in self.folders:
            code = {"org/gated": "GatedRepo"}.get(name, "RepoNotFound")
            return self.answer(403 if code == "GatedRepo" else 404, headers={"X-Error-Code": code})
        rest = path.removeprefix(name).strip("/").split("/")
        files = sorted(file for file in self.folders[name].iterdir() if file.is_file())
        match rest:
            case [""] | ["revision", "main" | "v1"]:
                info = {"id": name, "sha": COMMIT, "siblings": [{"rfilename": file.name} for file in files]}
                return self.answer(200, json.dumps(info).encode())
            case ["tree", _]:
                entries = [{"type": "file", "path": f.name, "size": f.stat().st_size, "oid": COMMIT} for f in files]
                return self.answer(200, json.dumps(entries).encode())
            case ["resolve", _, file]:
                if self.command == "GET":
                    self.fetched.append(file)
                return self.answer(200, (self.folders[name] / file).read_bytes())
            case ["revision", _]:
                return self.answer(404, headers={"X-Error-Code": "RevisionNotFound"})
        return self.answer(404)

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        usual = {"Content-Length": str(len(body)), "Content-Type": "application/json", "X-Repo-Commit": COMMIT}
        for key, value in {**usual, "ETag": f'"{sha1(body).hexdigest()}"', **dict(headers)}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """The server, while huggingface_hub is imported anew: it reads its environment once."""
    handler = type("Handler", (Hub,), {"folders": {}, "fetched": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    for name in [name for name in os.environ if name.startswith("HF_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    forget(monkeypatch)
    yield handler
    server.shutdown()
    server.server_close()


def forget(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "huggingface_hub"]:
        monkeypatch.delitem(sys.modules, name)


OF_IMAGES = ["config.json", "preprocessor_config.json"]
TEXTS = ["labels.txt", "spiece.model", "tokenizer_config.json"]
SHARDS = ["pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin", "pytorch_model.bin.index.json"]


@pytest.mark.parametrize(
    ("repository", "weights", "beside", "tokeniser"),
    [
        ("org/name", ["model.safetensors"], ["pytorch_model.bin", *SHARDS, "tf_model.h5"], False),
        ("org/name@v1", ["pytorch_model.bin"], ["training_args.bin", *TEXTS[1:]], False),
        ("org/name", SHARDS, ["README.md"], False),
        ("org/name", ["best_model.bin"], ["training_args.bin"], False),
        ("org/name", ["model.safetensors", *TEXTS], ["flax_model.msgpack"], True),
    ],
)
def test_only_needed_files_are_fetched_and_pickles_where_there_is_nothing_else(
    hub, tmp_path, repository, weights, beside, tokeniser
):
    for file in (*OF_IMAGES, *weights, *beside):
        (tmp_path / file).write_text(file)
    hub.folders["org/name"] = tmp_path
    fetch(repository, tokeniser=tokeniser)
    assert sorted(hub.fetched) == sorted([*OF_IMAGES, *weights])


def test_a_repository_is_loaded_without_its_tokeniser_unless_there_are_labels_to_read(hub):
    hub.folders["org/name"] = GOLDEN / "huggingface-clip"
    checkpoint = load_checkpoint("hf://org/name")
    assert checkpoint.name == "org/name"
    assert "labels.txt" in hub.fetched
    assert not any("token" in file for file in hub.fetched)
    assert same_weights(checkpoint.model, load_checkpoint(GOLDEN / "huggingface-clip").model)


def test_a_fetched_repository_loads_offline(hub, monkeypatch):
    hub.folders["org/name"] = GOLDEN / "huggingface-vit"
    load_checkpoint("hf://org/name")
    hub.fetched.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    forget(monkeypatch)
    load_checkpoint("hf://org/name")
    assert hub.fetched == []
    with pytest.raises(CheckpointError, match=r"hf://org/other .* not in the cache, and HF_HUB_OFFLINE is set"):
        load_checkpoint("hf://org/other")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("hf://org/empty", r"has none of model\.safetensors"),
        ("hf://org/two", r"has none of .*; download one of a\.pth, b\.pth and give its path"),
        ("hf://org/unknown", "there is no repository of that name, or it is private"),
        ("hf://org/gated", "it is gated: accept its terms"),
        ("hf://org/name@other", "it has no such revision"),
        ("hf://org/name/weights.bin", "the name of a repository is org/name"),
    ],
)
def test_the_error_of_a_failed_download_has_the_reason(hub, tmp_path, path, message):
    (tmp_path / "two").mkdir()
    for file in ("two/a.pth", "two/b.pth"):
        (tmp_path / file).touch()
    hub.folders |= {"org/name": GOLDEN / "huggingface-vit", "org/empty": tmp_path, "org/two": tmp_path / "two"}
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(path)


def test_a_server_that_does_not_answer_is_named(hub, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    forget(monkeypatch)
    with pytest.raises(CheckpointError, match=r"not in the cache, and http://127\.0\.0\.1:9 does not answer"):
        load_checkpoint("hf://org/name")
