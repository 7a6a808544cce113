"""export/command.py: what a person types, and what it says."""

import re
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from unittest.mock import Mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from app.bundle import Fact, load_bundle
from app.inference.openvino import OpenVinoEngine
from app.settings import DEMO_BUNDLE
from export.command import main
from export.messages import BY_MAKE
from export.other_engine import OPENVINO
from export.summary import measured
from model.checkpoints.describe import table, unusual
from model.checkpoints.families.native import save
from model.checkpoints.labels import UNNAMED
from model.checkpoints.load import describe_checkpoint
from tests.golden.test_checkpoints import CASES, describe, overrides_of, path_of
from tests.support.altered import GOLDEN, altered, stated
from tests.support.toy import toy_checkpoint


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / "toy.safetensors"
    save(toy_checkpoint(depth=1), path)
    return path


def add_tensors(path, more):
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    save_file(load_file(path) | more, path, metadata=metadata)


def test_export_writes_a_bundle_and_says_how_exact_it_is(checkpoint, tmp_path, capsys):
    out = tmp_path / "bundles" / "toy"
    beside = {"criterion.weight": torch.ones(7), "projector.weight": torch.ones(2), "projector.bias": torch.ones(2)}
    add_tensors(checkpoint, beside)
    options = ["--image-size", "32x48", "--set", "name=mine", "--precision", "fp16", "--without", "projector.*"]
    main(["--checkpoint", str(checkpoint), "--out", str(out), *options])
    manifest = load_bundle(out).manifest
    assert (manifest.name, manifest.image.size, manifest.tokens.grid) == ("mine", (32, 48), (4, 6))
    assert manifest.image.resize.size == (43, 58)  # the crop still cuts off the same share
    assert manifest.precision == "fp16"
    assert manifest.overrides == {"name": "mine", "image_size": "32,48", "without": "projector.*"}
    message = capsys.readouterr().out
    assert message.startswith(f"{out}: mine in fp16, ")
    assert "Largest difference to PyTorch" in message
    assert "\nLeft out, as training leaves it beside weights: criterion.weight.\n" in message
    assert "\nLeft out by hand: projector.*.\n" in message
    assert "fp16 gives the same label as fp32 on 100.0% of 96 images." in message
    assert "\nby hand  image_size=32,48\nstated   " in message
    assert manifest.facts["image_size"] == Fact(value=[32, 48], source="by hand", where="set by hand")
    assert message.endswith(f"\nNext: vit-serve serve --bundle {out}\n")


def test_export_says_where_the_labels_came_from_and_last_what_is_slow(tmp_path, capsys, monkeypatch, already_traced):
    monkeypatch.setenv(BY_MAKE, "yes")
    monkeypatch.setattr(OpenVinoEngine, "_rows", Mock(side_effect=RuntimeError("no kernel")))
    save(replace(toy_checkpoint(), labels=()), tmp_path / "toy.safetensors")
    main(["--checkpoint", str(tmp_path / "toy.safetensors"), "--out", str(tmp_path / "out")])
    assert load_bundle(tmp_path / "out").manifest.labels[0] == "class 0"
    *lines, complaint, following = capsys.readouterr().out.splitlines()
    assert f"Labels: {UNNAMED}. LABELS=FILE names them." in lines
    assert complaint == f"OpenVINO cannot run this bundle (no kernel). {OPENVINO.without}"
    assert following.startswith("Next: ")


def test_facts_are_told_by_their_source_guesses_first():
    """A family that is known by the names of tensors alone is a guess, and so is what follows from it."""
    description = describe_checkpoint(GOLDEN / "torchvision-vit/checkpoint.pth", overrides=stated("torchvision-vit"))
    guesses, by_hand, read = re.split(r"\n(?! )", table(unusual(description)))
    assert re.match(r"guessed  norm_eps=1e-06[^:]*: torchvision's\n +VisionTransformer", guesses)
    assert re.match(r"by hand  resize_mode=.*, heads=3", by_hand, re.DOTALL)
    assert re.match(r"read     .*width=24", read, re.DOTALL)
    assert "representation" not in guesses  # which it does not have


def options(facts: dict[str, str]) -> list[str]:
    return [part for fact in facts.items() for part in ("--set", "=".join(fact))]


def test_inspect_describes_a_file_without_reading_weights(checkpoint, capsys, monkeypatch):
    add_tensors(checkpoint, {"n_averaged": torch.tensor(3), "projector.weight": torch.ones(2)})
    monkeypatch.setattr("model.checkpoints.source.Source.tensors", lambda *_: pytest.fail("read a tensor"))
    main(["inspect", str(checkpoint), "--set", "name=mine", "--labels", "none", "--without", "projector.*"])
    line, *table, unread, by_hand = capsys.readouterr().out.splitlines()
    parts = "vit-serve, vit, 0.02 M parameters, 7 labels: class 0, class 1, class 2, class 3 and 3 more"
    assert line == f"mine: {parts}"
    assert table[0] == "by hand  labels=7: numbered, set by hand"
    assert (unread, by_hand) == (
        "Left out, as training leaves it beside weights: n_averaged.",
        "Left out by hand: projector.*.",
    )


@pytest.fixture
def unprocessed(tmp_path):
    """What `model.save_pretrained` alone leaves: no preprocessor_config.json."""
    folder = altered("huggingface-vit", tmp_path)
    (folder / "preprocessor_config.json").unlink()
    return folder


def test_inspect_shows_what_there_is_and_says_what_is_missing(unprocessed, capsys):
    with pytest.raises(SystemExit, match=r"^It cannot be exported yet: there is no preprocessor_config\.json"):
        main(["inspect", str(unprocessed), "--set", "crop=none"])
    line, *table = capsys.readouterr().out.splitlines()
    assert "transformers, ViTForImageClassification" in line
    assert table[0] == "missing  resize_mode, resize_size, interpolation, mean, std"
    assert "by hand  crop=none" in table


def test_one_refusal_says_all_that_is_missing_or_wrong(unprocessed, tmp_path):
    (tmp_path / "two.txt").write_text("cat\ndog\n")
    with pytest.raises(SystemExit, match="not exported") as refusal:
        main(["--checkpoint", str(unprocessed), "--out", str(tmp_path / "x"), "--labels", str(tmp_path / "two.txt")])
    assert 'write it with processor.save_pretrained("FOLDER")' in str(refusal.value)
    assert "; two.txt has 2 labels, the model has " in str(refusal.value)


def test_an_error_of_the_disk_is_one_line(checkpoint, monkeypatch):
    with pytest.raises(SystemExit, match=r"^not exported: .*toy\.safetensors is not a folder, so"):
        main(["--checkpoint", str(checkpoint), "--out", str(checkpoint / "bundles" / "toy")])
    monkeypatch.setattr("model.checkpoints.load.Source", Mock(side_effect=PermissionError("Permission denied")))
    with pytest.raises(SystemExit, match=r"^not inspected: Permission denied$"):
        main(["inspect", str(checkpoint)])


def test_a_learned_model_that_is_measured_on_a_persons_images_may_have_learned_from_them():
    judged = {"pictures": 9, "top1": 1.0, "probability_mean": 0.0, "probability_max": 0.0}
    judged |= {"source": "folder", "accuracy": 1.0, "accuracy_fp32": 1.0}
    published = load_bundle(DEMO_BUNDLE).manifest.model_copy(update={"agreement": judged, "recipe": {}})
    learned = published.model_copy(update={"recipe": {"method": "probe"}})
    (warning,) = set(measured(learned)) - set(measured(published))
    assert warning.startswith("The model was learned from labelled images: if these are among them, its accuracy")


def inspected(case, overrides: dict[str, str]) -> str:
    """What `inspect` prints for a golden checkpoint with further facts set, and the sentence that it exits with."""
    out = StringIO()
    try:
        with redirect_stdout(out):
            main(["inspect", str(path_of(case)), *options({**overrides_of(case), **overrides})])
    except SystemExit as end:
        return out.getvalue() + str(end)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "fact", "message"),
    [
        ("deit", "heads=0", "heads must be from 1 to 1,024, not 0"),
        ("deit", "image_size=32768,32768", "image_size (32768, 32768) gives 67,108,864 patches, more than 65,536"),
        ("deit", "resize_size=0,0", "resize_size must be from 1 to 65,536, not (0, 0)"),
        ("deit", "std=0,1,1", "std must be above 0 and finite, not (0.0, 1.0, 1.0)"),
        ("timm-plain", "mlp_ratio=0", "mlp_dim must be from 1 to 1,048,576, not 0"),
        ("timm-plain", "crop=none", "without a crop does not give every image (32, 32) pixels"),
        ("timm-plain", "embed_layer=5", "has the embed_layer 5, which is not supported"),
    ],
)
def test_nonsense_is_one_clear_sentence(name, fact, message):
    sentence = inspected(next(case for case in CASES if case.name == name), dict([fact.split("=")]))
    assert sentence.startswith("not inspected: ")
    assert sentence.endswith(message)


NONSENSE = st.one_of(
    st.sampled_from(["0", "-1", "1", "0,0", "1,1", "0,0,0", "8,8,8", "None", "True", "[]", "[0]", "[-1]", "()", "nan"]),
    st.sampled_from(["1e999", "1e-400", "9" * 5000, "{}", "[[]]", "'", "\\", "\0"]),
    st.sampled_from(["cls", "mean", "map", "avg", "none"]),
    st.integers().map(str),
    st.floats().map(str),
    st.text(max_size=5),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_kind_of_checkpoint_can_be_inspected(case):
    assert "parameters" in inspected(case, {})


@given(case=st.sampled_from(CASES), data=st.data())
@settings(max_examples=100, deadline=None)
def test_no_combination_of_facts_ends_in_a_traceback(case, data):
    """Facts are taken from the checkpoint's own and set to nonsense, up to three at once."""
    names = st.sampled_from(sorted(describe(case).origins))
    overrides = data.draw(st.dictionaries(names, NONSENSE, min_size=1, max_size=3))
    text = inspected(case, overrides)
    assert "parameters" in text or text.startswith("not inspected: ")
