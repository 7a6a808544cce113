"""Networks of transformers with switches that no golden file has, against transformers itself."""

import json
from functools import cache

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from app.images.preprocess import preprocess
from export.image_spec import image_spec
from lab.golden.peers.huggingface import PLAIN, SIZES, SQUARE, randomise, save
from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.families.huggingface_kinds import OF_POOLERS

TINY = {**SIZES, "intermediate_size": 40}
SWITCHES = ("query_bias", "key_bias", "value_bias", "proj_bias", "mlp_bias")
PUBLISHED_7B = {"query_bias": False, "value_bias": False}
TOLERANCE = 1e-6  # of the largest number


@cache
def processor():
    return transformers.ViTImageProcessorPil(**SQUARE)


def saved(model, folder, version=4):
    randomise(model)
    folder.mkdir(parents=True, exist_ok=True)
    save(model, folder, version=version)
    processor().save_pretrained(folder)
    return folder


def difference(model, folder, version=4, size=(20, 20)):
    """Between our network and that of transformers, relative to its largest number."""
    saved(model, folder, version)
    transformers.ViTImageProcessorPil(size={"height": size[0], "width": size[1]}).save_pretrained(folder)
    ours, images = load_checkpoint(folder).model, torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        out = model(images)
        theirs = out.logits if "logits" in out else out.pooler_output
        return ((ours(images) - theirs).abs().max() / theirs.abs().max()).item()


BIASES = [{}, PUBLISHED_7B, dict.fromkeys(SWITCHES, False), dict.fromkeys(SWITCHES, True)]
BIASES += [{switch: switch == "key_bias"} for switch in SWITCHES]


@pytest.mark.parametrize("registers", [0, 2])
@pytest.mark.parametrize("gated", [False, True])
def test_dinov3_with_every_switch_of_biases(tmp_path, gated, registers):
    stated = TINY | {
        "num_register_tokens": registers,
        "use_gated_mlp": gated,
        "hidden_act": "silu" if gated else "gelu",
    }
    for number, biases in enumerate(BIASES):
        model = transformers.DINOv3ViTModel(transformers.DINOv3ViTConfig(**stated, **biases))
        assert difference(model, tmp_path / str(number), version=4 + number % 2) < TOLERANCE, biases


@pytest.mark.parametrize("end", ["Model", "ForImageClassification"])
def test_dinov2_without_registers_where_there_may_be_some(tmp_path, end):
    """Its positions are for other images, and resized as those of the class with registers."""
    config = transformers.Dinov2WithRegistersConfig(**{**SIZES, "image_size": 36}, num_register_tokens=0)
    assert difference(getattr(transformers, f"Dinov2WithRegisters{end}")(config), tmp_path) < TOLERANCE


OBLONG = {**SIZES, "image_size": [16, 36]}  # 4 by 9 patches, whose number is a square
RELATIVE, ABSOLUTE = {"use_relative_position_bias": True}, {"use_absolute_position_embeddings": True}
SHARED = {"use_shared_relative_position_bias": True}


@pytest.mark.parametrize(
    ("kind", "stated"),
    [("Dinov2", {}), ("Dinov2WithRegisters", {})]
    + [(kind, stated) for kind in ("Beit", "Data2VecVision") for stated in (RELATIVE, ABSOLUTE, SHARED)],
)
def test_positions_of_a_rectangle_that_transformers_takes_for_a_square_are_refused(tmp_path, kind, stated):
    config = getattr(transformers, f"{kind}Config")(**OBLONG, **stated)
    saved(getattr(transformers, f"{kind}ForImageClassification")(config), tmp_path)
    with pytest.raises(CheckpointError, match=r"has the image_size \[16, 36\]: transformers resizes the positions of"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("kind", "stated"),
    [
        ("Dinov2", {"image_size": [20, 23]}),  # of the same patches as a square
        ("Beit", {}),  # without positions
        ("DINOv3ViT", {}),
        ("ViT", {}),
        ("DeiT", {}),
        ("IJepa", {}),
    ],
)
def test_other_networks_of_rectangles_are_those_of_transformers(tmp_path, kind, stated):
    config = getattr(transformers, f"{kind}Config")(**{**OBLONG, **stated}, num_labels=2)
    end = "Model" if kind == "DINOv3ViT" else "ForImageClassification"
    assert difference(getattr(transformers, f"{kind}{end}")(config), tmp_path, size=config.image_size) < TOLERANCE


@pytest.mark.parametrize("kind", ["ViT", "DeiT"])
def test_poolers_of_every_activation_and_width(tmp_path, kind):
    assert OF_POOLERS.keys() <= transformers.activations.ACT2CLS.keys()
    for act, size in (*((act, None) for act in OF_POOLERS), ("tanh", 32)):
        config = getattr(transformers, f"{kind}Config")(**TINY, pooler_act=act, pooler_output_size=size)
        model = getattr(transformers, f"{kind}Model")(config)
        assert difference(model, tmp_path / f"{act}-{size}") < TOLERANCE, (act, size)


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        *(("DINOv3ViT", {one: False}, f"says {one} False, and model.safetensors has such biases") for one in SWITCHES),
        ("ViT", {"pooler_act": "mish"}, "has the pooler_act mish; supported are gelu, "),
        ("ViT", {"pooler_output_size": 32}, "says pooler_output_size 32, and the pooler gives 24 numbers"),
        ("IJepa", {"architectures": ["IJepaModel"]}, "a pooler of IJEPA reads the first patch alone"),
        ("IJepa", {"architectures": None}, "a pooler of IJEPA reads the first patch alone"),
    ],
)
def test_tensors_that_are_not_as_config_json_says_and_other_poolers_are_refused(tmp_path, kind, changes, message):
    config = getattr(transformers, f"{kind}Config")(**TINY, **({"key_bias": True} if kind == "DINOv3ViT" else {}))
    pooler = {"add_pooling_layer": True} if kind == "IJepa" else {}
    stated = saved(getattr(transformers, f"{kind}Model")(config, **pooler), tmp_path) / "config.json"
    stated.write_text(json.dumps(json.loads(stated.read_text()) | changes))
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize("problem", [None, "single_label_classification", "multi_label_classification"])
def test_one_class_has_the_score_of_transformers_pipeline(tmp_path, problem):
    """Its own configuration refuses the second, which files of older releases have."""
    model = transformers.ViTForImageClassification(transformers.ViTConfig(**{**PLAIN, "id2label": {0: "crack"}}))
    model.config.problem_type = problem
    checkpoint = load_checkpoint(saved(model, tmp_path))
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (37, 53, 3), dtype=np.uint8))
    (answer,) = transformers.ImageClassificationPipeline(model=model, image_processor=processor())(picture)
    crop, _ = preprocess(picture, image_spec(checkpoint.preprocessing))
    mean, std = (torch.tensor(of) for of in (checkpoint.preprocessing.mean, checkpoint.preprocessing.std))
    pixels = ((torch.from_numpy(crop.copy()) / 255 - mean) / std).permute(2, 0, 1)
    with torch.inference_mode():
        ours = checkpoint.model(pixels[None]).sigmoid().item()
    assert (checkpoint.score, checkpoint.labels) == ("sigmoid", (answer["label"],))
    assert abs(ours - answer["score"]) < TOLERANCE
