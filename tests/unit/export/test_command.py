"""export/command.py: what a person types, and what it says."""

from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from app.bundle import load_bundle
from export.command import main
from model.checkpoints.describe import parameters
from model.checkpoints.families.native import save
from model.checkpoints.labels import UNNAMED
from tests.golden.test_checkpoints import CASES, describe, overrides_of, path_of
from tests.support.toy import toy_checkpoint, toy_model


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / "toy.safetensors"
    save(toy_checkpoint(depth=1), path)
    return path


def test_export_writes_a_bundle_and_says_how_exact_it_is(checkpoint, tmp_path, capsys):
    out = tmp_path / "bundles" / "toy"
    options = ["--image-size", "32x48", "--set", "name=mine", "--precision", "fp16"]
    main(["--checkpoint", str(checkpoint), "--out", str(out), *options])
    manifest = load_bundle(out).manifest
    assert (manifest.name, manifest.image.size, manifest.tokens.grid) == ("mine", (32, 48), (4, 6))
    assert manifest.image.resize.size == (43, 58)  # the crop still cuts off the same share
    assert manifest.precision == "fp16"
    assert manifest.overrides == {"name": "mine", "image_size": "32,48"}
    message = capsys.readouterr().out
    assert "Largest difference to PyTorch" in message
    assert "fp16 gives the same label as fp32 on 100.0% of 96 images." in message


def test_export_says_where_the_labels_came_from(tmp_path, capsys, already_traced):
    save(toy_checkpoint(), tmp_path / "toy.safetensors")
    (tmp_path / "dogs.csv").write_text("index,label\n" + "".join(f"{i},dog {i}\n" for i in range(7)))
    out = tmp_path / "dogs"
    main(["--checkpoint", str(tmp_path / "toy.safetensors"), "--out", str(out), "--labels", str(tmp_path / "dogs.csv")])
    manifest = load_bundle(out).manifest
    assert (manifest.labels[6], manifest.labels_from, manifest.wordnet) == ("dog 6", "dogs.csv", ())
    assert "Labels: dogs.csv\n" in capsys.readouterr().out


def test_export_says_what_to_do_about_a_guess(tmp_path, capsys, already_traced):
    save(replace(toy_checkpoint(), labels=()), tmp_path / "toy.safetensors")
    main(["--checkpoint", str(tmp_path / "toy.safetensors"), "--out", str(tmp_path / "toy")])
    assert f"Labels: {UNNAMED}. --labels FILE names them.\n" in capsys.readouterr().out


def test_inspect_says_what_to_do_about_a_guess(tmp_path, capsys):
    path = tmp_path / "thousand.safetensors"
    toy = toy_checkpoint(depth=1)
    config = replace(toy.model.config, num_classes=1000)
    save(replace(toy, model=toy_model(config), config=config, labels=()), path)
    main(["inspect", str(path)])
    assert capsys.readouterr().out.endswith(
        "\nLabels: ImageNet-1k, by the number of classes. If the model has other classes, name them with "
        "--labels FILE, or number them with --labels none.\n"
    )
    main(["inspect", str(path), "--labels", "none"])
    assert "Labels:" not in capsys.readouterr().out


def test_inspect_says_where_the_labels_came_from(checkpoint, capsys):
    main(["inspect", str(checkpoint), "--labels", "none"])
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("labels"))
    assert line.split(maxsplit=1)[1].startswith("7: class 0, class 1, class 2, class 3, ...")
    assert line.endswith("numbered, set by hand")


def test_inspect_says_how_rotary_positions_are_computed(capsys):
    main(["inspect", "tests/golden/checkpoints/timm-dinov3"])
    facts = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert (facts["rope.kind"], facts["rope.temperature"], facts["rope.pairs"]) == ("centered", "100.0", "halves")


def test_inspect_says_which_weights_were_taken(tmp_path, capsys):
    state = torch.load("tests/golden/checkpoints/deit/checkpoint.pth", weights_only=True)["model"]
    content = {"arch": "deit_tiny_patch16_224.fb_in1k", "state_dict": state, "state_dict_ema": state}
    torch.save(content, tmp_path / "model_best.pth.tar")
    small = ("embed_dim=24", "depth=4", "num_heads=3", "patch_size=4", "mlp_ratio=2.0")
    main(["inspect", str(tmp_path / "model_best.pth.tar"), *(part for fact in small for part in ("--set", fact))])
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "state_dict_ema; the file has state_dict too" in lines["weights"]
    assert "arch in the file" in lines["architecture"]


def test_inspect_describes_a_file_without_reading_weights(checkpoint, capsys, monkeypatch):
    monkeypatch.setattr("model.checkpoints.source.Source.take", lambda *_: pytest.fail("read a tensor"))
    main(["inspect", str(checkpoint), "--set", "name=mine"])
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "vit-serve" in lines["family"]
    assert lines["name"].endswith("set by hand")
    assert "(24, 40)" in lines["image_size"]
    assert "0.02 M" in lines["parameters"]
    assert "bilinear" in lines["preprocessing.interpolation"]


def test_parameters_are_counted_as_torch_does():
    model = toy_checkpoint().model
    assert parameters(model.config) == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--checkpoint", "nowhere.npz"], "nowhere.npz is not a file"),
        (["--checkpoint", "{}", "--set", "colour=red"], "--set colour: this kind of checkpoint has image_size, name"),
        (["--checkpoint", "{}", "--image-size", "33"], "not a multiple of patch_size"),
        (["--checkpoint", "{}", "--labels", "constraints.txt"], "labels, the model has 7 classes"),
        (["--checkpoint", "{}", "--labels", "nowhere.txt"], "nowhere.txt cannot be read as labels: No such file"),
    ],
)
def test_refusals_are_one_clear_line_and_leave_nothing(checkpoint, tmp_path, arguments, message):
    out = tmp_path / "out"
    with pytest.raises(SystemExit, match="not exported") as refusal:
        main([argument.format(checkpoint) for argument in arguments] + ["--out", str(out)])
    assert message in str(refusal.value)
    assert not out.exists()


@pytest.mark.parametrize("size", ["0", "1x2x3", "big"])
def test_a_size_that_is_none_is_refused(checkpoint, size, capsys):
    with pytest.raises(SystemExit):
        main(["--checkpoint", str(checkpoint), "--out", "x", "--image-size", size])
    assert "--image-size" in capsys.readouterr().err


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_kind_of_checkpoint_can_be_inspected(case):
    assert "parameters" in inspected(case, {})


def inspected(case, overrides: dict[str, str]) -> str:
    """What `inspect` prints for a golden checkpoint with further facts set, or the sentence that it exits with."""
    options = [part for fact in {**overrides_of(case), **overrides}.items() for part in ("--set", "=".join(fact))]
    out = StringIO()
    try:
        with redirect_stdout(out):
            main(["inspect", str(path_of(case)), *options])
    except SystemExit as end:
        return str(end)
    return out.getvalue()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"heads": "0"}, "heads must be from 1 to 1,024, not 0"),
        ({"heads": "-3"}, "heads must be from 1 to 1,024, not -3"),
        ({"heads": "1.5"}, "--set heads=1.5: expected something like heads=1"),
        ({"heads": "5"}, "width 24 is not a multiple of heads 5"),
        ({"image_size": "0,0"}, "image_size must be from 1 to 65,536, not (0, 0)"),
        ({"image_size": "-4,4"}, "image_size must be from 1 to 65,536, not (-4, 4)"),
        ({"image_size": "4,6"}, "image_size (4, 6) is not a multiple of patch_size 4"),
        ({"image_size": "32768,32768"}, "image_size (32768, 32768) gives 67,108,864 patches, more than 65,536"),
        ({"image_size": "16"}, "--set image_size=16: expected something like image_size=16,16"),
        ({"std": "0,1,1"}, "std must be above 0 and finite, not (0.0, 1.0, 1.0)"),
        ({"resize_size": "0,0"}, "resize_size must be from 1 to 65,536, not (0, 0)"),
        ({"pool": "max"}, "pool 'max' is none of cls, mean, mean_all, map, map_all, cls_mean"),
    ],
)
def test_nonsense_is_one_clear_sentence(overrides, message):
    case = next(case for case in CASES if case.name == "deit")
    sentence = inspected(case, overrides)
    assert sentence.startswith("not inspected: ")
    assert sentence.endswith(message)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"patch_size": "0"}, "patch_size must be from 1 to 65,536, not 0"),
        ({"depth": "0"}, "depth must be from 1 to 1,024, not 0"),
        ({"embed_dim": "0"}, "width must be from 1 to 1,048,576, not 0"),
        ({"mlp_ratio": "0"}, "mlp_dim must be from 1 to 1,048,576, not 0"),
        ({"reg_tokens": "1000000"}, "registers must be from 0 to 1,024, not 1000000"),
        ({"crop": "none"}, "without a crop does not give every image (32, 32) pixels"),
        ({"embed_layer": "5"}, "has the embed_layer 5, which is not supported"),
        ({"embed_norm_layer": "5"}, "has the norm 5, which is not supported"),
    ],
)
def test_nonsense_of_timm_is_one_too(overrides, message):
    case = next(case for case in CASES if case.name == "timm-plain")
    sentence = inspected(case, overrides)
    assert sentence.startswith("not inspected: ")
    assert sentence.endswith(message)


NONSENSE = st.one_of(
    st.sampled_from(["0", "-1", "1", "0,0", "1,1", "0,0,0", "8,8,8", "None", "True", "[]", "[0]", "[-1]", "()", "nan"]),
    st.sampled_from(
        ["1e999", "1e-400", "9" * 5000, "{}", "[[]]", "'", "\\", "\0", "cls", "mean", "map", "avg", "none"]
    ),
    st.integers().map(str),
    st.floats().map(str),
    st.text(max_size=5),
)


@given(case=st.sampled_from(CASES), data=st.data())
@settings(max_examples=100, deadline=None)
def test_no_combination_of_facts_ends_in_a_traceback(case, data):
    """Facts are taken from the checkpoint's own and set to nonsense, up to three at once."""
    names = st.sampled_from(sorted(describe(case).origins))
    overrides = data.draw(st.dictionaries(names, NONSENSE, min_size=1, max_size=3))
    text = inspected(case, overrides)
    assert "parameters" in text or text.startswith("not inspected: ")
