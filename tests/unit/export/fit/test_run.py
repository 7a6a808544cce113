"""export/fit/run.py and its report: from images to a model that loads, and its notes on the images."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from export.command import main
from export.fit import run as running
from export.fit.command import scratch
from export.fit.listing import list_images
from export.fit.methods import recipe
from export.fit.report import folder as reporting
from export.fit.report.folder import SPLIT
from export.fit.report.page import FIGURES
from export.fit.run import NotReported, run
from model.checkpoints import load_checkpoint
from model.checkpoints.families.native import FAMILY, save
from model.fit.doubt import CLEAR
from tests.golden.test_checkpoints import FOLDER, overrides_of, path_of
from tests.support.altered import altered, with_more, without
from tests.support.toy import toy_checkpoint

CHECKPOINT = toy_checkpoint(num_classes=0)
COLORS = {"blue": (40, 60, 200), "red": (200, 50, 40)}


def fill(folder: Path, counts: dict[str, int], *, colors=COLORS) -> None:
    """Images whose colour tells the label, with some noise. The crop leaves 62 % of them."""
    rng = np.random.default_rng([*counts.values()])
    for (label, count), color in zip(counts.items(), colors.values(), strict=False):
        (folder / label).mkdir(parents=True)
        for number in range(count):
            noise = rng.integers(-40, 41, (30, 44, 3))
            Image.fromarray(np.clip(color + noise, 0, 255).astype(np.uint8)).save(folder / label / f"{number}.png")


def learn(images, out, *, method="probe", given=(), checkpoint=CHECKPOINT, strict=False, replace=False):
    return run(checkpoint, images, out, recipe=recipe(method, given, seed=0), seed=0, strict=strict, replace=replace)


@pytest.fixture
def images(tmp_path):
    fill(tmp_path / "images", {"blue": 20, "red": 30})
    return tmp_path / "images"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Of a probe on 50 images. It lies in a folder with them and nothing else but the checkpoint."""
    folder = tmp_path_factory.mktemp("learned")
    fill(folder / "images", {"blue": 20, "red": 30})
    return learn(folder / "images", folder / "mine.safetensors")


def test_a_checkpoint_and_a_report_are_written_whose_split_can_be_learned_from_again(report):
    found = load_checkpoint(report.folder.with_suffix(".safetensors"))
    assert (found.name, found.family, found.labels) == ("mine", FAMILY, ("blue", "red"))
    assert found.preprocessing == CHECKPOINT.preprocessing
    assert (found.recipe["method"], found.recipe["checkpoint"]) == ("probe", "toy")
    assert (found.known.pictures, len(found.known.held_out)) == (50, 50)  # the network is as it was
    assert "100.0 % of the 5 held-out images got the right one of 2 labels." in report.headline
    written = sorted(path.name for path in report.folder.parent.iterdir())
    assert written == ["images", "mine.report", "mine.safetensors"]
    names = ["confusion.json", "confusion.svg", "index.html", "mistakes", "mistakes.json", "reliability.json"]
    assert sorted(file.name for file in report.folder.iterdir()) == [*names, "reliability.svg", "report.json", SPLIT]
    numbers = json.loads((report.folder / "report.json").read_text())
    assert numbers["learnt_from"] == {"blue": 18, "red": 27}
    assert [label["images"] for label in numbers["held_out"]] == [2, 3]
    listing = list_images(report.folder / SPLIT)
    assert (len(listing.train), len(listing.held_out)) == (45, 5)
    out = report.folder.with_name("again.safetensors")  # beside, so that files have the same place in both lists
    again = learn(report.folder / SPLIT, out)
    assert torch.equal(load_checkpoint(out).model.head.weight, found.model.head.weight)
    assert (again.folder / SPLIT).read_text() == (report.folder / SPLIT).read_text()


def test_the_split_has_the_images_where_the_report_lies_behind_a_link(images, tmp_path):
    (tmp_path / "large" / "disk").mkdir(parents=True)
    (tmp_path / "runs").symlink_to("large/disk")
    report = learn(images, tmp_path / "runs" / "mine.safetensors")
    assert all(image.file.exists() for image in list_images(report.folder / SPLIT).train)


def test_the_page_needs_nothing_else_and_has_words_for_figures_and_names_for_the_recipe(report):
    page, learned = (report.folder / "index.html").read_text(), report.folder.with_suffix(".safetensors")
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert page.count("<svg") == 2
    assert f"vit-serve export --checkpoint {learned} --out bundles/mine &amp;&amp; vit-serve" in page
    assert "<td>read</td><td>cls_mean</td>" in page
    figures = report.checkpoint.figures.keys()
    assert figures <= FIGURES.keys()
    assert not any(f"<td>{name}</td>" in page for name in figures)


def test_mistakes_are_shown_with_their_maps(tmp_path):
    fill(tmp_path / "images" / "train", {"blue": 12, "red <b>": 12})
    fill(tmp_path / "images" / "val", {"blue": 3, "red <b>": 2}, colors=dict.fromkeys("ab", COLORS["red"]))
    learn(tmp_path / "images", tmp_path / "mine.safetensors")
    folder = tmp_path / "mine.report"
    mistakes = json.loads((folder / "mistakes.json").read_text())
    assert [(m["right"], m["answer"]) for m in mistakes] == [("blue", "red <b>")] * 3
    scores = [mistake["answer_score"] for mistake in mistakes]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] + mistakes[0]["right_score"] == pytest.approx(1)
    assert (np.shape(mistakes[0]["evidence"]), np.shape(mistakes[0]["rollout"])) == ((3, 5), (3, 5))
    with Image.open(folder / "mistakes" / "01.png") as sheet:
        assert sheet.size == (3 * 256 + 2 * 6, 175)
    page = (folder / "index.html").read_text()
    assert "red &lt;b&gt;" in page
    assert "red <b>" not in page
    assert str(tmp_path / "images" / "val" / "blue" / "0.png") in page
    assert '<a href="mistakes/01.png"><img' in page


def test_a_wrong_label_is_the_most_suspicious_wherever_the_image_is(tmp_path):
    images = tmp_path / "images"
    fill(images / "train", {"blue": 20, "red": 20})
    fill(images / "val", {"blue": 3, "red": 3})
    wrong = [images / "train" / "red" / "other.png", images / "val" / "blue" / "other.png"]
    (images / "train" / "blue" / "0.png").rename(wrong[0])
    (images / "val" / "red" / "0.png").rename(wrong[1])
    fill(images / "train", {"green": 1}, colors={"green": (60, 190, 60)})
    report = learn(images, tmp_path / "mine.safetensors")
    found = json.loads((report.folder / "report.json").read_text())["suspicious_labels"]
    as_given = {(str(wrong[0]), "train", "red", "blue"), (str(wrong[1]), "val", "blue", "red")}
    assert {(of["file"], of["split"], of["label"], of["proposed"]) for of in found} == as_given
    assert found[0]["doubt"] >= found[1]["doubt"] >= CLEAR
    assert all(of["label_score"] < 0.5 < of["proposed_score"] for of in found)
    assert any(all(of["file"] in note for of in found) for note in report.notes)
    page = (report.folder / "index.html").read_text()
    assert page.count('src="data:image/jpeg;base64,') == 2


def test_no_label_is_named_where_the_model_is_wrong_more_often_than_labels(tmp_path):
    fill(tmp_path / "images", {"blue": 60, "red": 60}, colors=dict.fromkeys("ab", COLORS["blue"]))
    report = learn(tmp_path / "images", tmp_path / "mine.safetensors")
    (note,) = [note for note in report.notes if "contradicts" in note]
    assert str(tmp_path) not in note
    assert "Suspicious labels" in (report.folder / "index.html").read_text()


def test_changed_copies_of_one_image_are_shown(tmp_path):
    images = tmp_path / "images"
    fill(images, {"blue": 30, "red": 30})
    for file in images.glob("blue/*.png"):
        file.rename(file.with_name(f"{int(file.stem) // 3}_png.rf.{file.stem}.png"))
    report = learn(images, tmp_path / "mine.safetensors")
    groups = json.loads((report.folder / "report.json").read_text())["near_copies"]
    assert [len(group) for group in groups] == [3] * 10
    assert {Path(file).name.split("_")[0] for file in groups[0]} == {Path(groups[0][0]).name.split("_")[0]}
    page = (report.folder / "index.html").read_text()
    assert page.count('src="data:image/jpeg;base64,') == 2 * 6


EVERY_POOL = (
    *("dino-four-blocks", "dinov2-registers", "google-hybrid", "google-siglip", "huggingface-deit-teacher"),
    *("huggingface-dinov3", "huggingface-ijepa", "huggingface-metaclip-2", "mae"),
)


@pytest.mark.parametrize("name", EVERY_POOL)
def test_networks_of_every_pool_learn_and_have_maps(tmp_path, name):
    source = load_checkpoint(path_of(FOLDER / name), overrides=overrides_of(FOLDER / name) | {"num_classes": "0"})
    fill(tmp_path / "images" / "train", {"blue": 4, "red": 4})
    fill(tmp_path / "images" / "val", {"blue": 1, "red": 1}, colors={"a": COLORS["red"], "b": COLORS["blue"]})
    learn(tmp_path / "images", tmp_path / "mine.safetensors", checkpoint=source)
    assert load_checkpoint(tmp_path / "mine.safetensors").labels == ("blue", "red")
    assert len(json.loads((tmp_path / "mine.report" / "mistakes.json").read_text())) == 2


def test_fine_tuning_has_curves(images, tmp_path):
    given = [("epochs", "2"), ("rates", "0.01"), ("batch", "16")]
    learn(images, tmp_path / "mine.safetensors", method="finetune", given=given)
    points = json.loads((tmp_path / "mine.report" / "curves.json").read_text())
    assert points[-1]["epoch"] == 2.0
    found = load_checkpoint(tmp_path / "mine.safetensors")
    assert list(found.history) == points
    assert not torch.equal(found.model.blocks[0].attn.qkv.weight, CHECKPOINT.model.blocks[0].attn.qkv.weight)
    assert found.known is None  # only five images are held out


def test_from_scratch(images, tmp_path):
    source = scratch("mu/8", image_size="24,40", positions="2-D")
    learn(images, tmp_path / "mine.safetensors", method="pretrain", given=[("epochs", "1")], checkpoint=source)
    found = load_checkpoint(tmp_path / "mine.safetensors")
    assert (found.labels, found.recipe["checkpoint"], found.config.positions) == (("blue", "red"), "mu/8", "learned_2d")
    assert found.config.image_size == found.preprocessing.size == (24, 40)
    assert "Suspicious" not in (tmp_path / "mine.report" / "index.html").read_text()  # all heads have seen all images


def test_a_network_like_that_of_a_checkpoint_is_learned_from_scratch(images, tmp_path):
    toy, out = tmp_path / "toy.safetensors", tmp_path / "mine.safetensors"
    save(toy_checkpoint(num_classes=5), toy)
    how = ["--method", "pretrain", "--recipe", "epochs=1"]
    main(["fit", str(toy), "--images", str(images), "--out", str(out), *how])
    found = load_checkpoint(out)
    assert (found.labels, found.recipe["checkpoint"], found.config.width) == (("blue", "red"), "toy", 32)
    assert found.model.pos_embed.std() < CHECKPOINT.model.pos_embed.std() / 3


def test_from_scratch_without_labels(images, tmp_path):
    (images / "blue" / "0.png").rename(images / "0.png")
    source = scratch("mu/8", image_size="24,40", positions="1-D")
    masked = {"method": "masked", "given": [("epochs", "2")], "checkpoint": source}
    report = learn(images, tmp_path / "mine.safetensors", **masked)
    assert report.checkpoint.figures.keys() <= FIGURES.keys()
    assert report.notes[0] == "45 images were learned from and 5 held out. A tenth was held out."
    assert report.headline.endswith("It has no labels, so it gives embeddings: fine-tune it.")
    found = load_checkpoint(tmp_path / "mine.safetensors")
    assert (found.labels, found.config.num_classes) == ((), 0)
    names = ["curves.json", "curves.svg", "index.html", "report.json", SPLIT]
    assert sorted(path.name for path in report.folder.iterdir()) == names
    learn(report.folder / SPLIT, tmp_path / "more.safetensors", **masked)
    shutil.rmtree(images)
    fill(images, {"blue": 20, "red": 30})
    learn(images, tmp_path / "tuned.safetensors", checkpoint=found)
    assert load_checkpoint(tmp_path / "tuned.safetensors").labels == ("blue", "red")


@pytest.mark.parametrize(
    "changes",
    [
        {"id2label": {"0": "a"}},
        {"tensors": without("classifier")},
        {"tensors": with_more({"classifier.weight": torch.zeros(5, 24)})},  # as files for fine-tuning have it
    ],
)
def test_nothing_is_asked_about_a_head_that_will_be_replaced(tmp_path, changes):
    """It comes as far as the images, of which there are none."""
    folder = altered("huggingface-vit", tmp_path, **changes)
    (tmp_path / "images").mkdir()
    with pytest.raises(SystemExit) as refusal:
        main(["fit", str(folder), "--images", str(tmp_path / "images"), "--out", str(tmp_path / "mine.safetensors")])
    assert str(refusal.value).startswith(f"not learned: {tmp_path / 'images'}")


def test_folders_of_wordnet_ids_get_names(tmp_path):
    fill(tmp_path / "images", {"n01440764": 4, "n02099601": 4})
    learn(tmp_path / "images", tmp_path / "mine.safetensors")
    found = load_checkpoint(tmp_path / "mine.safetensors")
    assert (found.labels, found.wordnet) == (("tench", "golden retriever"), ("n01440764", "n02099601"))


def test_notes_name_everything_odd_about_the_images(tmp_path, capsys):
    images = tmp_path / "images"
    fill(images / "train", {"blue": 3, "red": 40})
    fill(images / "val", {"red": 2}, colors={"red": (150, 20, 20)})
    (images / "train" / "red" / "copy.png").write_bytes((images / "val" / "red" / "0.png").read_bytes())
    (images / "train" / "red" / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 and no more")
    (images / "train" / "red" / "notes.txt").write_text("")
    report = learn(images, tmp_path / "mine.safetensors")
    odd = (
        "43 images were learned from and 2 held out",
        "62 % of an image",
        ".txt (1)",
        "red/broken.jpg",
        "red/copy.png",
        "held-out images among those to learn from: 1",
        "near-copies of others: 2",
        "red has 40 images and blue has 3",
        "nothing is known about them: blue",
        "33 points away",
    )
    assert all(what in note for what, note in zip(odd, report.notes, strict=True))
    assert f"{images}/train/red/broken.jpg is left out: " in capsys.readouterr().err
    numbers = json.loads((report.folder / "report.json").read_text())
    assert [left["file"] for left in numbers["left_out"]] == [f"{images}/train/red/broken.jpg"]


def test_strict_refuses_broken_images_and_leaves_nothing(images, tmp_path):
    (images / "red" / "broken.png").write_text("no image")
    with pytest.raises(ValueError, match="--strict: images that cannot be used, named above: 1"):
        learn(images, tmp_path / "mine.safetensors", strict=True)
    assert [path.name for path in tmp_path.iterdir()] == ["images"]


def test_an_existing_file_is_replaced_only_on_demand(images, tmp_path):
    out = tmp_path / "mine.safetensors"
    out.write_text("precious")
    with pytest.raises(FileExistsError, match="--replace replaces it"):
        learn(images, out)
    assert out.read_text() == "precious"
    for _ in range(2):  # there is no report at first
        learn(images, out, replace=True)
    assert load_checkpoint(out).labels == ("blue", "red")


def full(*_args: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_model_is_kept_if_its_report_cannot_be_written(images, tmp_path, monkeypatch):
    monkeypatch.setattr(reporting, "page", full)
    with pytest.raises(NotReported, match="is written, but its report is not: "):
        learn(images, tmp_path / "mine.safetensors")
    assert load_checkpoint(tmp_path / "mine.safetensors").labels == ("blue", "red")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images", "mine.safetensors"]


def test_snapshots_stay_if_the_file_cannot_be_written(images, tmp_path, monkeypatch):
    given = [("epochs", "1"), ("rates", "0.01")]
    with monkeypatch.context() as patch:
        patch.setattr(running, "save", full)
        with pytest.raises(OSError, match="No space left"):
            learn(images, tmp_path / "mine.safetensors", method="finetune", given=given)
    assert sorted(path.name for path in (tmp_path / "mine.work").iterdir()) == ["fine-tuning.pt"]
    monkeypatch.setattr("model.fit.loop.nn.utils.clip_grad_norm_", lambda *_: pytest.fail("learned again"))
    learn(images, tmp_path / "mine.safetensors", method="finetune", given=given)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images", "mine.report", "mine.safetensors"]
