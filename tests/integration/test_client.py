"""The client of our own against the real server: as a library, as a command that goes on, as a package elsewhere."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from PIL import Image

from model.demo.__main__ import write_images
from tests.integration.conftest import KEY
from tests.support.replicas import Replica
from vit_serve_client import Client
from vit_serve_client.command import main

PICTURE = Path("docs/star.jpg")


@pytest.fixture
def images(tmp_path) -> Path:
    """Thirty images in two folders, and a file that is none."""
    folder = tmp_path / "images"
    for i in range(30):
        path = folder / ("a" if i % 2 else "b, c") / f"{i:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(i).integers(0, 256, (40, 60, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
    (folder / "a" / "bad.png").write_bytes(b"no image")
    return folder


def call(*arguments: str | Path, input: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """The command in this process, for all but what a process of its own shows."""
    out, err = TextIOWrapper(BytesIO()), StringIO()
    with redirect_stdout(out), redirect_stderr(err), patch("sys.stdin", TextIOWrapper(BytesIO(input))):
        code = main([*map(str, arguments)])
    return subprocess.CompletedProcess(arguments, code, out.buffer.getvalue(), err.getvalue())


def test_the_library_returns_the_services_answers(guarded_url):
    with Client(guarded_url, key=KEY) as client:
        result = client.classify(PICTURE, top_k=2)
        assert result.predictions[0].label == "star"
        assert (len(result.predictions), result.image.format, result.image.file) == (2, "JPEG", "star.jpg")
        assert client.classify(PICTURE.read_bytes(), attention=False).id is None
        assert client.attention(result.id, format="png").startswith(b"\x89PNG")
        assert json.loads(client.attention(result.id, format="json", method="rollout"))["method"] == "rollout"
        embedding = client.embed(PICTURE).embedding
        (towards,) = client.evidence(result.id, [embedding]).results
        assert towards["receipt"]["product"] == pytest.approx(np.square(embedding).sum(), rel=1e-5)
        assert len(client.embed(str(PICTURE)).embedding) == client.model()["manifest"]["features"]
        found = client.verify(result.id, steps=4, random_orders=1)
        assert (found.label, len(found.deletion.scores)) == ("star", 5)
        assert client.cover(result.id, patches="27,28").patches == [27, 28]


def test_every_image_gets_its_labels_and_a_bad_file_is_listed(guarded_url, images, tmp_path):
    done = call(
        guarded_url, images, "--out", tmp_path / "out.csv", "--top-k", "2", "--key", KEY, "--maps", tmp_path / "maps",
        "--method", "positive_evidence",
    )  # fmt: skip
    assert (done.returncode, "1 of 31 images could not be used" in done.stderr) == (1, True), done.stderr
    assert "bad.png: This is text, not JPEG" in done.stderr
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = [*csv.DictReader(file)]
    assert Counter(row["rank"] for row in rows) == {"": 1, "1": 30, "2": 30}
    assert [*dict.fromkeys(row["image"] for row in rows)] == sorted(map(str, images.rglob("*.png")))
    with Client(guarded_url, key=KEY) as client:
        for row in (row for row in rows if row["rank"] == "1"):
            expected = client.classify(row["image"], attention=False).predictions[0]
            assert (row["label"], float(row["score"])) == (expected.label, pytest.approx(expected.score, abs=1e-5))
            drawn = tmp_path / "maps" / f"{Path(row['image']).relative_to(images)}.png"
            assert drawn.read_bytes() == client.attention(row["id"], method="positive_evidence", format="png")
            with Image.open(drawn) as image:
                assert image.size == (60, 40)


def test_standard_output_and_standard_input(guarded_url, images):
    """Names stay the bytes that they are."""
    names = [os.fsencode(images) + name for name in (b"/a/01.png", b"/a/03.png", b"/\xff.png")]
    (images / "a" / "05.png").rename(os.fsdecode(names[-1]))
    done = call(guarded_url, "-", "--key", KEY, input=b"\n".join(names))
    assert done.returncode == 0, done.stderr
    assert {line.partition(b",")[0] for line in done.stdout.splitlines()[1:]} == {*names}


def test_a_notebook_sends_what_it_has_in_memory_and_gets_arrays(guarded_url):
    with Client(guarded_url, key=KEY) as client, Image.open(PICTURE) as picture:
        pixels = np.asarray(picture.convert("RGB"))
        results = client.classify_all([picture, pixels, PICTURE, *[pixels] * 15], attention=True).results
        assert len(results) == 18
        assert {result.predictions[0].label for result in results} == {"star"}
        found = client.attention(results[1].id, method="evidence")
        assert found.values.sum() == pytest.approx(found.facts["sum"], abs=1e-4)
        assert found.receipt["patches"] == pytest.approx(found.values.sum(), abs=1e-4)
        assert found.overlay(colorbar=False).size == picture.size
        assert found.crop_box == (0, 0, *picture.size)
        assert found._repr_png_().startswith(b"\x89PNG")
        unkept = client.attention(pixels, method="evidence")
        assert np.allclose(unkept.values, found.values, atol=1e-5)
        assert unkept.overlay(colorbar=False).size == picture.size
        layers, heads = client.walls(results[1].id).shape[:2]
        assert np.array(client.report(results[1].id).heads.entropy).shape == (layers, heads)
        assert client.wall(results[1].id).height > layers
        assert (
            client.tokens(results[1].id).shape
            == client.patches(picture).shape
            == (*found.values.shape, len(client.embed(pixels).embedding))
        )
        assert client.judged() is None
        assert {"id", "predictions", "image"} <= {*dir(results[0])}


def test_the_client_waits_for_a_killed_server(tmp_path, monkeypatch, in_onnx_runtime):
    from lab.load import bulk  # and with it all that is measured

    monkeypatch.setattr(bulk, "KILLS", 1)
    write_images(tmp_path / "images", 200)
    with patch.object(Replica, "revive", autospec=True, side_effect=Replica.revive) as revived:
        run = bulk.killed(tmp_path / "images", tmp_path)
    assert (revived.call_count, run.lost, run.twice) == (1, 0, 0)
    assert run.right > 0.9


def test_the_lines_of_the_front_page_run_where_the_client_alone_is_installed(url, tmp_path):
    """In an empty environment far from the clone."""
    venv.create(tmp_path / ".venv", symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", tmp_path / ".venv", "install", "--quiet", "--retries", "1"]
    installed = subprocess.run([*pip, Path("client").absolute()], capture_output=True, text=True, check=False)
    if "No matching distribution" in installed.stderr:
        pytest.skip("pip finds no index of packages")
    assert installed.returncode == 0, installed.stderr
    for folder in ("docs", "photos"):
        (tmp_path / folder).mkdir()
        shutil.copy(PICTURE, tmp_path / folder)
    page = Path("README.md").read_text().replace("http://localhost:8000", url)
    (lines,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (command,) = re.findall(r"^    (vit-serve-client .*)", page, re.MULTILINE)
    subprocess.run([".venv/bin/python", "-c", lines], cwd=tmp_path, check=True)
    subprocess.run(f". .venv/bin/activate && {command}", cwd=tmp_path, check=True, shell=True)
    assert (tmp_path / "evidence.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "labels.csv").read_text().splitlines()[1].startswith("photos/star.jpg,1,star,")
    assert (tmp_path / "heatmaps" / "star.jpg.png").exists()
