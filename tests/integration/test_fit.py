"""From a folder of images to a served model: `python -m export fit`, export, and the service's own answers."""

import csv
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from app.bundle import load_bundle
from export.command import main
from model.checkpoints import load_checkpoint
from model.checkpoints.families.native import save
from model.demo.shapes import draw
from tests.support.samples import squares
from tests.support.toy import toy_checkpoint

COUNTS = {"arrow": 60, "circle": 60, "heart": 40, "star": 40}
DEMO_LABELS = {"arrow": 0, "circle": 2, "heart": 6, "star": 10}


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> Path:
    """200 images of several sizes and types in 4 folders, as a person has them."""
    folder = tmp_path_factory.mktemp("photos")
    for label, count in COUNTS.items():
        (folder / label).mkdir()
        for number in range(count):
            rng = np.random.default_rng([DEMO_LABELS[label], number])
            size = (int(rng.integers(90, 200)), int(rng.integers(90, 200)))
            image = Image.fromarray(draw(rng, size=size, label=DEMO_LABELS[label]).pixels)
            image.save(folder / label / f"{number}.{('jpg', 'png', 'webp')[number % 3]}")
    return folder


@pytest.fixture(scope="module")
def learned(photos, tmp_path_factory) -> Path:
    """What the first of the three commands writes."""
    out = tmp_path_factory.mktemp("learned") / "mine.safetensors"
    main(["fit", "model/demo/shapes.safetensors", "--images", str(photos), "--out", str(out)])
    return out


def test_the_served_model_is_as_often_right_as_the_report_says(learned, tmp_path, serve):
    bundle = tmp_path / "mine"
    main(["--checkpoint", str(learned), "--out", str(bundle)])
    manifest = load_bundle(bundle).manifest
    assert manifest.labels == tuple(COUNTS)
    assert manifest.recipe["method"] == "probe"
    report = learned.with_suffix(".report")
    with (report / "split.csv").open() as text:
        held_out = [row for row in csv.DictReader(text) if row["split"] == "val"]
    right = 0
    with serve(bundle=bundle) as client:
        for row in held_out:
            answer = client.post("/classify", content=(report / row["file"]).read_bytes()).json()
            right += answer["results"][0]["predictions"][0]["label"] == row["label"]
    assert len(held_out) == 20
    assert right / len(held_out) == manifest.figures["top1_accuracy"]
    assert right >= 18


def test_the_command_says_how_good_it_is_and_what_to_do_next(photos, tmp_path, capsys):
    out = tmp_path / "mine.safetensors"
    main(["fit", "model/demo/shapes.safetensors", "--images", str(photos), "--out", str(out), "--recipe", "read=cls"])
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "180 images were learned from and 20 held out. A tenth of each label was held out."
    assert " of the 20 held-out images got the right one of 4 labels." in said[-3]
    assert said[-2] == f"Report: {tmp_path}/mine.report/index.html"
    assert said[-1] == f"Next: make export CHECKPOINT={out} OUT=bundles/mine && make serve BUNDLE=bundles/mine"
    assert load_checkpoint(out).model.config.pool == "cls"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--recipe", "epochs=3"], "not learned: --recipe epochs: the recipe of probe has read"),
        (["--images", "nowhere"], "not learned: --images nowhere: this is neither a folder nor a CSV file"),
        (["--out", "x.pth"], "not learned: --out x.pth: the name must end in .safetensors"),
        (["--method", "pretrain"], "not learned: --method pretrain begins with --from-scratch VARIANT, and with no "),
        (["--from-scratch", "Ti/16"], "not learned: --method probe begins with a checkpoint: python -m export fit "),
        (["--set", "colour=red"], "not learned: --set colour: this kind of checkpoint has "),
    ],
)
def test_refusals_are_one_clear_line(photos, tmp_path, arguments, said):
    out = tmp_path / "mine.safetensors"
    with pytest.raises(SystemExit) as refusal:
        main(["fit", "model/demo/shapes.safetensors", "--images", str(photos), "--out", str(out), *arguments])
    assert str(refusal.value).startswith(said)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_clear_line_and_leaves_what_was_there(photos, tmp_path):
    """The limit of a file's size stands in for it: writing fails in the middle in the same way."""
    code = """
import resource, sys
from export.command import main
resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))
main(sys.argv[1:])
"""
    out = tmp_path / "mine.safetensors"
    out.write_text("precious")
    arguments = ["fit", "model/demo/shapes.safetensors", "--images", photos, "--out", out, "--replace"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"not learned: {out}: ")
    assert "File too large" in last
    assert last.endswith("Run the same command again; it goes on from the last snapshot, if there is one.")
    assert out.read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.safetensors"]


def test_a_run_that_was_killed_goes_on_and_ends_with_the_same_weights(tmp_path):
    save(toy_checkpoint(), tmp_path / "toy.safetensors")
    faint = squares(90, contrast=12)  # a probe is often wrong, so rates are tried
    for number, (pixels, kind) in enumerate(zip(faint.pixels.numpy(), faint.classes.tolist(), strict=True)):
        (tmp_path / "images" / str(kind)).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / "images" / str(kind) / f"{number}.png")

    def command(name: str) -> list[str]:
        recipe = ["--recipe", "epochs=20", "--recipe", "rates=0.003,0.001", "--recipe", "batch=8"]
        images, out = tmp_path / "images", tmp_path / name
        paths = [str(tmp_path / "toy.safetensors"), "--images", str(images), "--out", str(out)]
        return [sys.executable, "-m", "export", "fit", *paths, "--method", "finetune", *recipe]

    def learn(name: str) -> None:
        subprocess.run(command(name), check=True, capture_output=True, timeout=120)

    learn("whole.safetensors")
    with subprocess.Popen(command("killed.safetensors"), stderr=subprocess.DEVNULL) as process:
        first = tmp_path / "killed.work" / "rate-0.003.pt"
        end = time.monotonic() + 100
        while not first.exists() and time.monotonic() < end:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert first.exists()
    assert not (tmp_path / "killed.safetensors").exists()
    learn("killed.safetensors")
    assert not (tmp_path / "killed.work").exists()
    one, other = (load_checkpoint(tmp_path / f"{name}.safetensors") for name in ("whole", "killed"))
    states = [checkpoint.model.state_dict() for checkpoint in (one, other)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert one.history == other.history
