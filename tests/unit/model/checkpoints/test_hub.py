"""model/checkpoints/hub.py against a small server that answers as the Hub does."""

import json
import os
import shutil
import sys
import threading
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.hub import fetch
from tests.support.altered import GOLDEN
from tests.support.runs import same_weights

COMMIT = "c" * 40
NEEDED = ["config.json", "model.safetensors", "preprocessor_config.json"]


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


@pytest.mark.parametrize(
    ("repository", "case", "tokeniser", "files"),
    [
        ("org/name", "huggingface-vit", False, NEEDED),
        ("org/name@v1", "huggingface-vit-v5", False, ["config.json", "preprocessor_config.json", "pytorch_model.bin"]),
        (
            "org/name",
            "huggingface-siglip",
            True,
            sorted([*NEEDED, "labels.txt", "spiece.model", "tokenizer_config.json"]),
        ),
    ],
)
def test_only_needed_files_are_fetched_and_pickles_where_there_is_nothing_else(hub, repository, case, tokeniser, files):
    hub.folders["org/name"] = GOLDEN / case
    fetch(repository, tokeniser=tokeniser)
    assert sorted(hub.fetched) == files


SHARDS = ["pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"]


@pytest.mark.parametrize(
    ("weights", "fetched"),
    [
        (["pytorch_model.bin.index.json", *SHARDS], ["pytorch_model.bin.index.json", *SHARDS]),
        (["best_model.bin", "training_args.bin"], ["best_model.bin"]),
    ],
)
def test_pickles_in_shards_or_under_any_name_are_fetched(hub, tmp_path, weights, fetched):
    for file in (GOLDEN / "huggingface-vit-v5").iterdir():
        if file.suffix == ".json":
            shutil.copy(file, tmp_path)
    state = torch.load(GOLDEN / "huggingface-vit-v5/pytorch_model.bin", weights_only=True)
    if len(fetched) > 1:
        files = {name: SHARDS[i % 2] for i, name in enumerate(state)}
        for shard in SHARDS:
            torch.save({name: tensor for name, tensor in state.items() if files[name] == shard}, tmp_path / shard)
        (tmp_path / weights[0]).write_text(json.dumps({"weight_map": files}))
    else:
        for file in weights:
            torch.save(state, tmp_path / file)
    hub.folders["org/name"] = tmp_path
    plain = load_checkpoint(GOLDEN / "huggingface-vit-v5").model
    assert same_weights(load_checkpoint("hf://org/name").model, plain)
    assert sorted(hub.fetched) == sorted(["config.json", "preprocessor_config.json", *fetched])


def test_one_of_several_files_of_other_names_is_asked_for(hub, tmp_path):
    for file in ("a.pth", "b.pth"):
        (tmp_path / file).write_bytes(b"x")
    hub.folders["org/name"] = tmp_path
    with pytest.raises(CheckpointError, match=r"has none of .*; download one of a\.pth, b\.pth and give its path"):
        load_checkpoint("hf://org/name")


def test_a_repository_is_loaded_without_its_tokeniser_unless_there_are_labels_to_read(hub):
    hub.folders["org/name"] = GOLDEN / "huggingface-clip"
    checkpoint = load_checkpoint("hf://org/name")
    assert checkpoint.name == "org/name"
    assert sorted(hub.fetched) == sorted([*NEEDED, "labels.txt"])
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
        ("hf://org/unknown", "there is no repository of that name, or it is private"),
        ("hf://org/gated", "it is gated: accept its terms"),
        ("hf://org/name@other", "it has no such revision"),
        ("hf://org/name/weights.bin", "the name of a repository is org/name"),
    ],
)
def test_the_error_of_a_failed_download_has_the_reason(hub, tmp_path, path, message):
    hub.folders |= {"org/name": GOLDEN / "huggingface-vit", "org/empty": tmp_path}
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(path)


def test_a_server_that_does_not_answer_is_named(hub, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    forget(monkeypatch)
    with pytest.raises(
        CheckpointError,
        match=r"not in the cache, and http://127\.0\.0\.1:9 does not answer\. .* their folder, or set HF_ENDPOINT",
    ):
        load_checkpoint("hf://org/name")
