"""Files that two libraries, releases or trainings read differently: what is asked, and what a file says is believed."""

import argparse
import json
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint, load_checkpoint
from model.checkpoints.statements import of_pixels
from model.preprocessing import IMAGENET_MEAN
from tests.support.altered import GOLDEN, altered, stated

PLAIN = torch.load(GOLDEN / "deit/checkpoint.pth", weights_only=True)["model"]
SCALED = torch.load(GOLDEN / "deit-3/checkpoint.pth", weights_only=True)["model"]
HEADLESS = {name: tensor for name, tensor in PLAIN.items() if not name.startswith("head.")}
MEAN, OTHER = (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)
OF_DEIT = {"architecture": "DeiT", "heads": "3"}
SIZES = {"embed_dim": "24", "depth": "4", "num_heads": "3", "patch_size": "4", "mlp_ratio": "2.0"}
OF_TIMM = {"architecture": "vit_tiny_patch16_224.augreg_in21k", **SIZES}
Args = argparse.Namespace


@pytest.mark.parametrize(
    ("content", "also"),
    [
        ({"model": PLAIN, "epoch": 3}, "DeiT"),
        ({"model": SCALED}, "DeiT-3"),  # RoPE-ViT with positions has the same tensors
        ({"model": HEADLESS}, "MAE"),
        (HEADLESS, "DINO"),
    ],
)
def test_whose_a_file_is_that_several_libraries_may_have_written_is_asked(saved, tmp_path, content, also):
    for name, first in (("x.pth", "vit"), (f"{also}_tiny.pth".lower(), also)):
        with pytest.raises(CheckpointError, match=f"does not say architecture.* --set architecture={also}") as question:
            describe_checkpoint(saved(content, name))
        assert re.search(rf"in this example.*?: --set architecture={first}", str(question.value))
    chosen = describe_checkpoint(tmp_path / "x.pth", overrides={"architecture": also, "heads": "3"})
    assert (chosen.architecture, chosen.origins["mean"].source) == (also, "by hand")


@pytest.mark.parametrize(
    ("content", "member"),
    [
        ({"model": PLAIN, "args": Args(distillation_type="none")}, "DeiT"),
        ({"model": PLAIN, "args": {"blr": 0.001}}, "MAE"),
        ({"teacher": HEADLESS, "args": Args(out_dim=65536)}, "DINO"),
        ({"teacher": HEADLESS | {"head.last_layer.weight_g": torch.ones(9, 1)}}, "DINO"),
        ({"model": HEADLESS | {"decoder_embed.weight": torch.ones(8, 24)}}, "MAE"),
    ],
)
def test_a_script_or_a_tensor_of_its_own_proves_whose_a_file_is(saved, content, member):
    assert describe_checkpoint(saved(content), overrides={"heads": "3"}).architecture == member


def test_pixels_that_nothing_proves_are_a_guess_although_the_network_is_known(saved):
    """TIPS, and a person's own training of DINOv2, have its tensors and other pixels."""
    state = HEADLESS | {"mask_token": torch.zeros(1, 24), "register_tokens": torch.zeros(1, 2, 24)}
    origins = describe_checkpoint(saved({"teacher": state}), overrides={"heads": "3"}).origins
    assert origins["mean"] == ("guessed", "dinov2 data/transforms.py")
    assert {origins[name].source for name in ("architecture", "activation", "norm_eps", "crop")} == {"guessed"}
    assert {origins[name].source for name in ("width", "depth", "registers", "num_classes")} == {"read"}


TRANSFORM = f"Compose(\n  Resize(size=9)\n  Normalize(mean={MEAN}, std={OTHER})\n)"


@pytest.mark.parametrize(
    ("content", "mean", "where"),
    [
        ({"args": Args(mean=[*MEAN])}, MEAN, "args.mean"),
        ({"hyper_parameters": {"mean": MEAN, "std": OTHER}}, MEAN, "hyper_parameters.mean"),
        ({"config": {"data": {"mean": [*MEAN]}}}, MEAN, "config.data.mean"),
        ({"normalize": {"mean": [25.5, 51.0, 76.5]}}, MEAN, "normalize.mean"),
        ({"cfg": {"DATASET_MEAN": torch.tensor(MEAN)}}, MEAN, "cfg.DATASET_MEAN"),
        ({"args": Args(imagenet_default_mean_and_std=True)}, IMAGENET_MEAN, "args.imagenet_default_mean_and_std"),
        ({"args": Args(imagenet_default_mean_and_std=False)}, (0.5,) * 3, "args.imagenet_default_mean_and_std"),
        ({"transform": TRANSFORM}, MEAN, "transform.mean"),
    ],
)
@pytest.mark.parametrize("named", [OF_DEIT, OF_TIMM])
def test_pixels_that_a_file_states_are_taken_in_every_family(saved, content, mean, where, named):
    description = describe_checkpoint(saved({"model": PLAIN, **content}), overrides=named)
    assert description.preprocessing.mean == pytest.approx(mean)
    assert description.origins["mean"].source == "stated"
    assert re.match(rf"{where} of the file|args in the file", description.origins["mean"].where)


def test_pixels_that_a_script_has_written_beside_the_weights_are_taken(tmp_path):
    save_file(PLAIN, tmp_path / "x.safetensors")
    (tmp_path / "args.yaml").write_text("mean: [0.1, 0.2, 0.3]\nstd: null\n")
    (tmp_path / "hparams.yaml").write_text("!!python/name:os.system\n")
    description = describe_checkpoint(tmp_path / "x.safetensors", overrides=OF_DEIT)
    assert (description.preprocessing.mean, description.origins["mean"].where) == (MEAN, "mean of args.yaml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"args": Args(mean=MEAN), "config": {"mean": OTHER}}, r"mean 0.1,0.2,0.3, and config.mean of the file 0.4"),
        ({"hyper_parameters": {"mean": np.array(MEAN)}}, "hyper_parameters.mean of the file cannot be read: give"),
        ({"img_size": 96}, "positions says image_size 16,16, and img_size of the file 96,96: choose one"),
    ],
)
@pytest.mark.parametrize("named", [OF_DEIT, OF_TIMM])
def test_pixels_that_two_places_say_differently_or_that_cannot_be_read_are_asked_for(saved, content, message, named):
    file = saved({"model": PLAIN, **content})
    with pytest.raises(CheckpointError, match=message):
        describe_checkpoint(file, overrides=named)
    answered = describe_checkpoint(file, overrides=named | {"mean": "0,0,0", "image_size": "16,16"})
    assert (answered.preprocessing.mean, answered.origins["mean"].source) == ((0, 0, 0), "by hand")


def test_a_crop_and_an_interpolation_that_the_file_states_are_taken(saved):
    file = saved({"model": PLAIN, "config": {"crop_pct": 0.5, "interpolation": "LANCZOS"}})
    description = describe_checkpoint(file, overrides=OF_DEIT)
    assert (description.preprocessing.resize_size, description.preprocessing.interpolation) == ((32, 32), "lanczos")
    assert {description.origins[name].source for name in ("resize_size", "interpolation")} == {"stated"}


@pytest.mark.parametrize(
    ("content", "left"),
    [
        ({"config": {"resize": 256}}, "config.resize of the file (256)"),
        ({"normalize": True}, "normalize of the file (True)"),
        ({"args": Args(transform=TRANSFORM)}, "args.transform of the file (Compose( Resize(size=9) ))"),
        ({"args": Args(img_size=None, mean=None, interpolation="", crop_pct=0.9, lr=0.1)}, ""),
    ],
)
def test_what_a_file_says_of_pixels_and_is_not_used_is_named(saved, content, left):
    for named in (OF_DEIT, OF_TIMM):
        advice = describe_checkpoint(saved({"model": PLAIN, **content}), overrides=named).advice
        assert advice == (f"Said and not used: {left}." if left else "")


def test_a_network_that_any_script_calls_as_timm_does_is_not_asked_for(saved):
    name = "vit_tiny_patch16_224.augreg_in21k"
    for content in ({"hyper_parameters": {"model_name": name}}, {"args": Args(model=f"hf_hub:timm/{name}")}):
        found = describe_checkpoint(saved({"state_dict": PLAIN, **content}), overrides=SIZES)
        assert (found.architecture, found.origins["architecture"].source) == ("vit_tiny_patch16_224", "stated")
    two = saved({"state_dict": PLAIN, "arch": name, "config": {"backbone": "deit3_small_patch16_224"}})
    with pytest.raises(CheckpointError, match="does not say architecture"):
        describe_checkpoint(two, overrides=SIZES)


def test_the_image_processor_beside_a_network_that_is_not_transformers_is_believed(tmp_path):
    folder = altered("timm-plain", tmp_path, **{"pretrained_cfg.mean": None, "pretrained_cfg.std": None})
    file = folder / "preprocessor_config.json"
    processor = {"image_processor_type": "ViTImageProcessor", "size": {"height": 32, "width": 32}}
    file.write_text(json.dumps({**processor, "image_mean": MEAN, "image_std": OTHER}))
    with pytest.raises(
        CheckpointError, match=r"resize_mode shortest, and preprocessor_config\.json squash: choose one"
    ):
        describe_checkpoint(folder)
    by_hand = {"resize_mode": "squash", "resize_size": "32,32", "crop": "none", "interpolation": "bilinear"}
    assert describe_checkpoint(folder, overrides=by_hand).preprocessing.mean == MEAN
    file.write_text(json.dumps({"image_processor_type": "Mine", "image_mean": MEAN}))
    description = describe_checkpoint(folder)
    assert description.preprocessing.mean == MEAN
    assert "preprocessor_config.json (preprocessor_config.json names Mine, which is not supp" in description.advice


def test_two_lists_are_mean_and_std_under_a_name_of_pixels_alone():
    steps = {"milestones": [[0, 10, 20], [0.1, 0.01, 0.001]], "stages": [["a", "b", "c"], ["d", "e", "f"]]}
    measured = {"metrics": {"mean": [0.7, 0.8, 0.9], "std": [0.1, 0.1, 0.2]}}
    assert not of_pixels(steps | measured, of="the file")
    pair = of_pixels({"normalize": [MEAN, OTHER]}, of="the file")
    assert {(one.fact, one.value) for one in pair} == {("mean", MEAN), ("std", OTHER)}


KEYS = st.sampled_from(["mean", "img_size", "crop_pct", "args"])
ONE = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9))
SEVERAL = st.one_of(ONE, st.lists(st.one_of(ONE, st.lists(ONE, max_size=2)), max_size=4))
VALUES = st.one_of(SEVERAL, st.dictionaries(KEYS, st.one_of(SEVERAL, st.dictionaries(KEYS, SEVERAL))))


@given(VALUES)
def test_whatever_a_file_says_no_value_is_taken_that_cannot_be_meant(content):
    for fact, value, _ in of_pixels({"args": content, "std": content}, of="the file"):
        if value is not None and fact:
            assert len(value) == {"mean": 3, "std": 3, "image_size": 2}[fact] if fact != "crop_pct" else 0 < value <= 1


def test_another_module_of_vit_pytorch_with_the_same_tensors_is_asked_about():
    """ats_vit.py leaves out tokens by their attention."""
    case = GOLDEN / "vit-pytorch-1.2.4-cls/checkpoint.pt"
    facts = stated("vit-pytorch-1.2.4-cls")
    (problem,) = describe_checkpoint(case, overrides={n: v for n, v in facts.items() if n != "architecture"}).problems
    assert problem.endswith("the module, as in this example: --set architecture=vit")
    with pytest.raises(CheckpointError, match="--set architecture=ats_vit: of modules with these tensors, vit is supp"):
        describe_checkpoint(case, overrides=facts | {"architecture": "ats_vit"})


@pytest.mark.parametrize(("release", "asks"), [("4.47.0", 0), ("4.48.2", 1), ("4.51.3", 1), ("4.52.0", 0)])
def test_what_the_classifier_of_dinov2_with_registers_reads_changed_between_releases(tmp_path, release, asks):
    folder = altered("huggingface-dinov2-registers", tmp_path, transformers_version=release)
    problems = describe_checkpoint(folder).problems
    assert len(problems) == asks
    assert all(problem.endswith("--set pool=cls_mean") for problem in problems)
    if asks:
        assert not describe_checkpoint(folder, overrides={"pool": "cls_mean"}).problems
        with pytest.raises(CheckpointError, match="--set pool=mean: supported is cls_mean"):
            describe_checkpoint(folder, overrides={"pool": "mean"})


def test_positions_that_may_be_of_overlapping_patches_are_asked_about(saved):
    """TransReID: kernels of 16 pixels, 12 apart, in an image of 256."""
    shapes = {"pos_embed": torch.zeros(1, 1 + 21**2, 24), "patch_embed.proj.weight": torch.zeros(24, 3, 16, 16)}
    file, named = saved(HEADLESS | shapes), {"architecture": "DINO", "heads": "3"}
    (problem,) = describe_checkpoint(file, overrides=named).problems
    assert "336 x 336 pixels, or of 256 x 256 in patches that overlap" in problem
    assert not describe_checkpoint(file, overrides=named | {"image_size": "336,336"}).problems


def test_whole_numbers_alone_are_those_of_a_quantised_file(saved):
    name = "blocks.0.mlp.fc1.weight"
    file = saved({"model": PLAIN | {name: (PLAIN[name] * 100).round()}})
    with pytest.raises(CheckpointError, match=f"has whole numbers alone in {name}"):
        load_checkpoint(file, overrides=OF_DEIT)
