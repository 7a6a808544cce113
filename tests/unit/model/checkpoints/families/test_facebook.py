"""model/checkpoints/families/facebook.py: what the golden files cannot show."""

import argparse

import pytest
import torch

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint
from tests.support.altered import GOLDEN

HEADS = {"heads": "3"}
DEIT, MAE, DINO = ({**HEADS, "architecture": name} for name in ("DeiT", "MAE", "DINO"))
NAMED_DINO = {"architecture": "DINO"}


def state_of(path):
    content = torch.load(GOLDEN / path, weights_only=True)
    return content.get("model", content)


def test_mae_cuts_nothing_off_above_224_pixels(saved):
    """mae util/datasets.py: crop_pct = 1.0 if args.input_size > 224."""
    state = state_of("mae/checkpoint.pth")
    assert state["pos_embed"].shape[1:] == (17, 24)  # 4 x 4 patches of 4 pixels
    for side, resized in ((224, 256), (256, 256)):
        table = torch.zeros(1, 1 + (side // 4) ** 2, 24)
        recipe = describe_checkpoint(saved({"model": state | {"pos_embed": table}}), overrides=MAE).preprocessing
        assert (recipe.size, recipe.resize_size) == ((side, side), (resized, resized))


@pytest.mark.parametrize("kind", [argparse.Namespace, dict])
def test_deit_is_cropped_as_its_own_command_line_says(saved, kind):
    """deit datasets.py, build_transform: size = int(args.input_size / args.eval_crop_ratio)."""
    content = {"model": state_of("deit/checkpoint.pth"), "args": kind(eval_crop_ratio=0.5)}
    description = describe_checkpoint(saved(content), overrides=HEADS)
    recipe = description.preprocessing
    assert description.origins["resize_size"] == ("stated", "args.eval_crop_ratio of the file")
    assert recipe.resize_size == (2 * recipe.size[0], 2 * recipe.size[1])


def of_size(width, depth, **more):
    """A file as DeiT's, with the shapes of the published network of that width, and so many blocks."""
    state = state_of("deit/checkpoint.pth") | {f"blocks.{depth - 1}.norm1.weight": torch.zeros(width)}
    shapes = {"patch_embed.proj.weight": torch.zeros(width, 3, 4, 4), "head.weight": torch.zeros(6, width)}
    return {"model": state | shapes | more}


def test_published_sizes_imply_the_heads(saved):
    """Another number of blocks is of a person's own network, whose heads are written nowhere."""
    named = {"architecture": "DeiT"}
    assert describe_checkpoint(saved(of_size(1280, 32)), overrides=named).config.heads == 16
    (problem,) = describe_checkpoint(saved(of_size(1280, 31)), overrides=named).problems
    assert problem.startswith("the file does not say heads: ")


def test_fixed_positions_of_a_small_network_leave_open_whose_heads_it_has(saved):
    """MoCo v3 publishes ViT-S/16 with 12 heads, and its convert_to_deit.py writes it as DeiT does."""
    learned, named = torch.ones(1, 17, 384), {"architecture": "DeiT"}
    assert describe_checkpoint(saved(of_size(384, 12, pos_embed=learned)), overrides=named).config.heads == 6
    fixed = torch.cat([torch.zeros(1, 1, 384), learned[:, 1:]], 1)
    (problem,) = describe_checkpoint(saved(of_size(384, 12, pos_embed=fixed)), overrides=named).problems
    assert "MoCo v3 and MAE-Lite, whose networks of this size have 12 heads" in problem
    tower = {f"module.visual.{name}": tensor for name, tensor in without_head(of_size(384, 12)["model"]).items()}
    (problem,) = describe_checkpoint(saved({"state_dict": tower}), overrides=NAMED_DINO).problems
    assert "the network is an image tower, and SLIP's of this size have 12 heads" in problem


def without_head(state):
    return {name: tensor for name, tensor in state.items() if "head." not in name}


def test_moco_v3_is_known_by_its_arch_and_its_positions(saved):
    """moco-v3 main_lincls.py: Resize(256), which is bilinear, and CenterCrop(224)."""
    table = torch.cat([torch.zeros(1, 1, 384), torch.ones(1, 56**2, 384)], 1)
    state = {f"module.{name}": tensor for name, tensor in of_size(384, 12, pos_embed=table)["model"].items()}
    description = describe_checkpoint(saved({"arch": "vit_small", "state_dict": state}))
    assert (description.architecture, description.config.heads, description.config.pool) == ("MoCo v3", 12, "cls")
    recipe = description.preprocessing
    assert (recipe.size, recipe.resize_size, recipe.interpolation) == ((224, 224), (256, 256), "bilinear")


def test_a_head_of_more_vectors_than_any_published_one_has_a_person_asked(saved):
    state = state_of("deit/checkpoint.pth") | {"head.weight": torch.zeros(6, 48)}
    (problem,) = describe_checkpoint(saved({"model": state}), overrides=DEIT).problems
    assert problem.startswith("the head reads 48 numbers, 2 times the width, as no published head of DeiT: ")
    assert describe_checkpoint(saved({"model": state}), overrides=DEIT | {"pool": "cls"}).config.head_layers == 2


def test_a_persons_head_called_like_that_of_dinos_training_is_no_part_of_training(saved):
    state = state_of("dino-four-blocks/checkpoint.dino/full.pth")
    layers = {"head.mlp.0.weight": torch.ones(8, 24), "head.mlp.2.weight": torch.ones(5, 8)}
    with pytest.raises(CheckpointError, match=r"head\.mlp\.0\.weight.*more than one layer"):
        describe_checkpoint(saved(state | layers), overrides=DINO)
    of_training = layers | {"head.last_layer.weight_v": torch.ones(9, 5)}
    one_layer = {"head.mlp.weight": torch.ones(5, 24)}
    for head, overrides, classes in (
        (of_training, HEADS, 0),
        (layers, {**DINO, "num_classes": "0"}, 0),
        (one_layer, DINO, 5),
    ):
        assert describe_checkpoint(saved(state | head), overrides=overrides).config.num_classes == classes


def batch_norm(*, variance, **how):
    norm = torch.nn.BatchNorm1d(24, **how).eval()
    for name, tensor in norm.state_dict().items():
        if tensor.is_floating_point():
            torch.nn.init.uniform_(tensor, *(variance if name == "running_var" else (0.1, 2)))
    return norm


PROBE = argparse.Namespace(blr=0.1, nb_classes=6, global_pool=False)
OF_MAE = batch_norm(variance=(1e-5, 1e-3), affine=False, eps=1e-6)  # so small that the eps counts
OWN = [batch_norm(variance=(0.1, 2)), batch_norm(variance=(0.1, 2))]


@pytest.mark.parametrize(
    ("norms", "beside", "overrides"),
    [([OF_MAE], {"args": PROBE}, HEADS), (OWN, {}, {**MAE, "batch_norm_eps": "1e-5"})],
    ids=["MAE", "two"],
)
def test_batch_norms_before_a_linear_head_are_a_part_of_it(saved, norms, beside, overrides):
    """mae main_linprobe.py: nn.Sequential(BatchNorm1d(width, affine=False, eps=1e-6), head)."""
    layers = torch.nn.Sequential(*norms, torch.nn.Linear(24, 6))
    state = without_head(state_of("deit/checkpoint.pth"))
    state |= {f"head.{name}": tensor for name, tensor in layers.state_dict().items()}
    file, images = saved({"model": state, **beside}), torch.randn(2, 3, 16, 16)
    loaded = load_checkpoint(file, overrides=overrides)
    torch.testing.assert_close(loaded.model(images), layers(loaded.model.read(loaded.model.encode(images))))
    assert loaded.architecture == "MAE"
    problems = describe_checkpoint(file, overrides=MAE).problems
    assert any("eps of the batch norm" in problem for problem in problems) == (not beside)  # MAE's is known


@pytest.mark.parametrize(
    ("folder", "file"), [("dinov2/checkpoint.hub", "pretrain.pth"), ("dino-four-blocks/checkpoint.dino", "full.pth")]
)
def test_a_backbone_alone_gives_its_class_token(folder, file):
    """It is the first part of what the head of DINOv2 reads, and the last of what the head of DINO reads."""
    both = load_checkpoint(GOLDEN / folder, overrides=HEADS)
    alone = load_checkpoint(GOLDEN / folder / file, overrides=DINO if "dino-" in folder else HEADS)
    assert (alone.config.num_classes, alone.labels) == (0, ())
    images = torch.randn(2, 3, *both.config.image_size)
    width = both.config.width
    read = both.model.embedding(both.model.encode(images))
    part = read[:, :width] if both.config.pool == "cls_mean" else read[:, -width:]
    torch.testing.assert_close(alone.model(images), part)


def test_maes_pretrained_encoder_gives_its_class_token(saved):
    """mae_pretrain_*.pth: models_mae.py's forward_encoder without masking, and the norm after it."""
    tuned = load_checkpoint(GOLDEN / "mae/checkpoint.pth", overrides=MAE).model
    state = state_of("mae/checkpoint.pth")
    state |= {"mask_token": torch.zeros(1, 1, 8), "decoder_embed.weight": torch.zeros(8, 48)}
    for kind in ("weight", "bias"):
        state[f"norm.{kind}"] = state.pop(f"fc_norm.{kind}")
        del state[f"head.{kind}"]
    alone = load_checkpoint(saved({"model": state}), overrides=HEADS)
    assert alone.architecture == "MAE"
    images = torch.randn(2, 3, *alone.config.image_size)
    torch.testing.assert_close(alone.model(images), tuned.fc_norm(tuned.layers(images)[-1][:, 0]))


def test_a_linear_head_on_the_class_token_of_dinov2(saved):
    """As most people fine-tune the backbone of torch.hub."""
    state = state_of("dinov2/checkpoint.hub/pretrain.pth")
    state |= {"classifier.weight": torch.ones(6, state["cls_token"].shape[-1]), "classifier.bias": torch.ones(6)}
    description = describe_checkpoint(saved(state), overrides=HEADS)
    assert (description.config.pool, description.config.head_layers, description.config.num_classes) == ("cls", 1, 6)
    assert not description.advice


def test_other_classes_than_the_command_line_says_and_files_with_the_same_tensors_are_refused(saved):
    state = state_of("deit/checkpoint.pth")
    content = {"model": state, "args": argparse.Namespace(nb_classes=1000)}
    with pytest.raises(CheckpointError, match="say 1000 classes, the head has 6"):
        describe_checkpoint(saved(content), overrides=DEIT)
    with pytest.raises(CheckpointError, match=r"both have blocks\.0\.attn\.proj\.bias: name the file to load"):
        load_checkpoint(saved({"model": state}, "two.pth").parent, overrides=DEIT)
    with pytest.raises(CheckpointError, match="3 files with weights: name one, such as "):
        load_checkpoint(saved({}, "three.pth").parent)


def test_dinos_pool_can_be_set_where_two_readings_fit():
    """2 D features: ViT-B's class token and mean patch, or the class tokens of two blocks."""
    case = GOLDEN / "dino-mean-patch/checkpoint.dino"
    read = describe_checkpoint(case, overrides=HEADS).config
    assert (read.pool, read.head_layers) == ("cls_mean", 1)
    chosen = describe_checkpoint(case, overrides={**HEADS, "pool": "cls"}).config
    assert (chosen.pool, chosen.head_layers) == ("cls", 2)
