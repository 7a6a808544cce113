"""Files that cannot be loaded faithfully, and facts that they cannot carry: the error says which and why.

timm's are in test_timm.py. Tensors that are missing or not used are found for all families at once: test_native.py.
"""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint
from tests.support.altered import GOLDEN, altered, renamed, stated, with_more, without
from tests.support.runs import same_weights

SIMPLE, MEAN, CLS = (f"vit-pytorch-{case}" for case in ("1.26.11-simple", "1.9.2-mean", "1.26.11-cls"))
OPENCLIP, VIT, CLIP = "openclip-quickgelu", "huggingface-vit", "huggingface-clip"
TOWER = "model_cfg.vision_cfg"
OTHER_PATCHES = {"embedding/kernel": np.zeros((8, 4, 3, 32), np.float32)}
TWO_SLOTS = {"encoder.pos_embedding": torch.zeros(1, 2 + 25, 24)}
MASKED = {"architectures": ["BeitForMaskedImageModeling"]}


PARAMETRIZED, OLD = "parametrizations.weight.original", "weight_orig"
COMPUTED = "is part of a weight that PyTorch computes: save"


def pretrained(state):
    return without("pooler")(without("classifier")(state))


@pytest.mark.parametrize(
    ("case", "changes", "message"),
    [
        ("google-siglip", {"tensors": without("head/")}, r"no params/img/head/kernel: it is an image tower"),
        ("google-siglip", {"tensors": with_more({"params/txt/b": np.zeros(3)})}, "has a text tower"),
        ("google-vit-jax", {"tensors": without("_1/query")}, r"has no blocks\.0\.attn\.q\.kernel"),
        ("google-vit-jax", {"tensors": with_more(OTHER_PATCHES)}, "8 x 4 pixels"),
        (VIT, {"model_type": "swin"}, "model_type swin; supported are vit, "),
        (VIT, {"hidden_act": "relu"}, "activation 'relu' is none of gelu"),
        (VIT, {"num_channels": 1}, "takes 1 channels"),
        (VIT, {"image_size": 40}, r"gives \(20, 20\) and ViTForImageClassification takes \(40, 40\)"),
        ("huggingface-beit", {"use_absolute_position_embeddings": True}, "absolute positions and relative biases at"),
        ("huggingface-siglip", {"vision_config.vision_use_head": False}, "SiglipModel has no attention pool"),
        ("huggingface-siglip", {"tensors": without("vision_model.head")}, "has no pooler of SiglipModel"),
        ("huggingface-beit", {"tensors": pretrained, **MASKED}, "has no pooler of BeitForMasked"),
        (OPENCLIP, {f"{TOWER}.pool_type": "none"}, "has the pool_type none"),
        (OPENCLIP, {"preprocess_cfg.resize_mode": "longest"}, "resize_mode 'longest' is none of shortest"),
        ("torchvision-vit", {"tensors": with_more(TWO_SLOTS)}, "a table of 27 positions does not fit 5 by 5 patches"),
        ("torchvision-vit", {"tensors": with_more({"conv_proj.conv_last.weight": torch.zeros(1)})}, "of convolutions"),
        (CLS, {"tensors": with_more({"pos_embedding": torch.zeros(9, 24)})}, "module: its class token has no position"),
        (CLS, {"tensors": with_more({"transformer.pos_emb.scales": torch.zeros(8)})}, "pos_emb.scales"),
        ("timm-plain", {"label_descriptions": ["cat"]}, "label_descriptions are list"),
        (CLS, {"tensors": without("mlp_head")}, "a backbone, not a classifier"),
        (CLS, {"tensors": with_more({"to_patch_embedding.2.weight": torch.zeros(24, 16)})}, "RGB pixels"),
        *(
            (case, {"tensors": renamed(f"{layer}.weight", f"{layer}.{part}")}, f"{layer}.{part} {COMPUTED}")
            for case, layer in (
                (VIT, "classifier"),
                ("timm-plain", "blocks.0.mlp.fc1"),
                ("timm-plain", "blocks.0.norm1"),
            )
            for part in (PARAMETRIZED, OLD)
        ),
    ],
)
def test_the_error_names_what_is_not_supported(tmp_path, case, changes, message):
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(altered(case, tmp_path, **changes), overrides=stated(case))


@pytest.mark.parametrize(
    ("case", "changes"),
    [
        ("openclip-average", {f"{TOWER}.head_width": 0}),
        ("openclip-average", {TOWER: [1]}),
        ("torchvision-vit", {"tensors": with_more({"encoder.pos_embedding": torch.zeros(5)})}),
    ],
)
def test_what_no_library_writes_is_refused_in_one_sentence(tmp_path, case, changes):
    path = altered(case, tmp_path, **changes)
    for read in (describe_checkpoint, load_checkpoint):
        with pytest.raises(CheckpointError, match=r"^the checkpoint is not as its library writes it \(\w+: .*\)$"):
            read(path, overrides=stated(case))


@pytest.mark.parametrize(
    ("case", "facts", "message"),
    [
        ("google-big-vision-sincos", ["image_size"], r"does not say image_size: .* --set image_size=224,224$"),
        ("deit", ["heads"], r"does not say heads: give it, as in this example: --set heads=1$"),
        ("torchvision-vit", ["mean"], "20 x 20 pixels.* --set mean=0.485"),
        (MEAN, ["heads", "mean", "std"], "does not say heads, mean, std: .* --set heads=1 --set mean"),
    ],
)
def test_facts_that_the_file_lacks_must_be_given(tmp_path, case, facts, message):
    given = {name: text for name, text in stated(case).items() if name not in facts}
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(altered(case, tmp_path), overrides=given)


def test_weights_of_transformers_without_their_description_are_refused(tmp_path):
    folder = altered(VIT, tmp_path)
    (folder / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"no config\.json beside these weights"):
        load_checkpoint(folder)


def test_a_training_of_openclip_is_told_how_to_describe_itself(tmp_path):
    """open_clip_train/main.py saves {"epoch", "name", "state_dict", "optimizer"}, and no description."""
    state = load_file(altered(OPENCLIP, tmp_path) / "open_clip_model.safetensors")
    (tmp_path / "run").mkdir()
    run = {"epoch": 3, "name": "run", "state_dict": {f"module.{name}": tensor for name, tensor in state.items()}}
    torch.save(run, tmp_path / "run" / "epoch_3.pt")
    with pytest.raises(CheckpointError, match=r"no open_clip_config\.json beside epoch_3\.pt: .*get_model_config"):
        load_checkpoint(tmp_path / "run" / "epoch_3.pt")
    tower = {"image_size": 20, "layers": 2, "width": 24, "patch_size": 4, "mlp_ratio": 1.5, "head_width": 8}
    shown = {"embed_dim": 12, "vision_cfg": tower, "quick_gelu": True}
    (tmp_path / "run" / "open_clip_config.json").write_text(json.dumps({"model_cfg": shown, "preprocess_cfg": {}}))
    loaded = load_checkpoint(tmp_path / "run" / "epoch_3.pt")
    assert same_weights(loaded.model, load_checkpoint(GOLDEN / OPENCLIP).model)
    assert loaded.config == load_checkpoint(GOLDEN / OPENCLIP).config
