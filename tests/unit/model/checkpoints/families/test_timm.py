"""model/checkpoints/families/timm.py: what timm's own numbers in tests/golden cannot show."""

import json

import pytest
import torch
from torch import Tensor

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.families.timm_architectures import find, table
from model.checkpoints.families.timm_network import network
from model.checkpoints.load import describe_checkpoint
from model.config import RopeConfig
from tests.support.altered import training_run, with_more, without
from tests.support.timm_files import PLAIN, SIZES, SMALL, config_of, load, toy, write

EVA02 = RopeConfig(reference=(16, 16))
DINOV3 = RopeConfig(kind="centered", pairs="halves", temperature=100.0)
NAMES = ["ant", "bee", "cow", "dog", "eel"]


@pytest.fixture
def plain(tmp_path):
    """Writes a vit_base_patch16_224 with changes, returns its folder."""
    _, state = toy(PLAIN)
    return lambda also=(), **config: write(tmp_path, state | dict(also), config_of(PLAIN, **config))


@torch.inference_mode()
def assert_same(ours, theirs) -> None:
    images = torch.randn(2, 3, *theirs.config.image_size)
    torch.testing.assert_close(ours(images), theirs(images))


def why_not(name: str) -> str:
    architecture, _ = find(name)
    (_, recipe), *_ = architecture.tags.values()
    try:
        network(architecture, image_size=tuple(recipe["input_size"][1:]), num_classes=7)
    except CheckpointError as reason:
        return str(reason)
    return ""


def test_every_architecture_is_a_configuration_or_is_refused_by_name():
    reasons = {name: why_not(name) for name in table()["architectures"]}
    refused = {name for name, reason in reasons.items() if reason}
    assert [name for name in refused if not reasons[name].startswith(name)] == []
    assert len(reasons) - len(refused) >= 267
    assert {"vit_small_patch16_18x2_224", "vit_dwee_patch16_reg1_gap_256", "vit_base_resnet50d_224"} <= refused


@pytest.mark.parametrize(
    ("architecture", "switches"),
    [
        ("vit_large_patch14_clip_quickgelu_336", {"norm_pre": True, "patch_bias": False, "activation": "quick_gelu"}),
        ("vit_large_patch14_clip_336", {"norm_eps": 1e-5, "activation": "gelu", "heads": 16}),
        ("vit_giant_patch14_dinov2", {"gated_mlp": True, "mlp_dim": 4096, "activation": "silu", "layer_scale": True}),
        ("vit_so400m_patch14_siglip_224", {"pool": "map", "mlp_dim": 4304, "class_token": False}),
        ("vit_medium_patch16_gap_256", {"pool": "mean", "final_norm": "before_pool", "qkv_bias": False}),
        ("eva_large_patch14_196", {"pool": "mean", "final_norm": "after_pool", "class_token": True}),
        ("vit_base_r50_s16_384", {"stem_layers": (3, 4, 9), "patch_size": 16}),
        ("vit_small_r26_s32_224", {"stem_layers": (2, 2, 2, 2), "patch_size": 32}),
        ("flexivit_base", {"position_resize": "bilinear"}),
        ("vit_intern300m_patch14_448", {"final_norm": "none"}),
        ("test_vit3", {"pool": "map_all", "pool_heads": None, "pool_mlp_dim": None}),
        ("eva_giant_patch14_336", {"rope": None, "mlp_dim": 6144, "pool": "mean", "final_norm": "after_pool"}),
        ("eva02_base_patch14_448", {"rope": EVA02, "mlp_norm": True, "gated_mlp": True, "mlp_dim": 2048}),
        ("eva02_large_patch14_clip_336", {"rope": EVA02, "inner_norm": True, "mlp_norm": False, "pool": "cls"}),
        ("eva02_enormous_patch14_clip_224", {"block": "res_post", "layer_scale": False}),
        ("vit_mediumd_patch16_rope_reg1_gap_256", {"rope": EVA02, "registers": 1, "positions": "none"}),
        ("vit_pe_core_large_patch14_336", {"pool": "map_all", "pool_heads": 8, "pool_mlp_dim": 4096, "norm_pre": True}),
        ("vit_pe_core_gigantic_patch14_448", {"pool": "map", "pool_mlp_dim": 6144, "mlp_dim": 8960}),
        ("vit_pe_spatial_base_patch16_512", {"final_norm": "none", "pool": "mean", "positions": "learned"}),
        ("vit_base_patch16_rope_ape_224", {"rope": RopeConfig(temperature=100.0, axes="xy"), "positions": "learned"}),
        ("vit_base_patch16_rope_mixed_224", {"rope": RopeConfig(kind="learned", temperature=10.0, axes="xy")}),
        ("vit_small_plus_patch16_dinov3", {"rope": DINOV3, "registers": 4, "qkv_bias": False, "mlp_dim": 1536}),
        ("vit_7b_patch16_dinov3", {"rope": DINOV3, "mlp_dim": 8192, "final_norm": "before_pool", "pool": "mean"}),
        ("vit_giant_patch16_lingbot", {"rope": DINOV3, "mlp_dim": 4096, "pool": "cls", "layer_scale": True}),
    ],
)
def test_switches_that_the_name_implies(architecture, switches):
    """Of those that lab/golden/peers/pytorch_image_models.py does not make."""
    entry, _ = find(architecture)
    config = network(entry, image_size=(448, 448), num_classes=7)
    assert {name: getattr(config, name) for name in switches} == switches


def test_the_folder_has_every_fact(plain):
    checkpoint = load_checkpoint(plain(recipe={"tag": "mine"}, label_names=NAMES, label_descriptions={"ant": "an ant"}))
    assert (checkpoint.name, checkpoint.family) == ("vit_base_patch16_224.mine", "timm")
    assert checkpoint.labels == ("an ant", "bee", "cow", "dog", "eel")
    assert checkpoint.origins["mean"].where == "config.json"
    assert checkpoint.origins["resize_size"].where == "config.json: crop_pct 0.9"


def test_what_older_versions_of_timm_saved_is_not_needed(plain):
    computed = {"rope.pos_embed": torch.ones(16, 16), "blocks.0.attn.rel_coords_log": torch.ones(3)}
    assert_same(load_checkpoint(plain(also=computed)).model, toy("vit_base_patch16_224")[0])


def as_eva(state: dict[str, Tensor], *, heads: int = 3) -> dict[str, Tensor]:
    """With separate projections, as models/eva.py saves them; keys and values of the first `heads` heads alone."""
    changed = {key: tensor for key, tensor in state.items() if ".attn.qkv." not in key}
    for key in state.keys() - changed.keys():
        for name, rows in zip("qkv", state[key].chunk(3), strict=True):
            kept = rows if name == "q" else rows[: heads * 8]
            changed[key.replace("qkv", f"{name}_proj")] = kept.clone()
    return changed


def with_norm_before(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return as_eva(state) | {"norm.weight": state["fc_norm.weight"].clone()}


def of_sapiens(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return without("ls2")(as_eva(state, heads=2))


HYBRID, ROPE, SAPIENS = "vit_tiny_r_s16_p8_224", "vit_small_patch16_rope_224", "vit_base_patch16_sapiens2"
OF_CLIP = {"visual.conv1.weight": torch.ones(24, 3, 8, 8), "logit_scale": torch.ones(1)}
OF_37_BY_39 = {"model_args": {"img_size": [37, 39]}, "recipe": {"input_size": [3, 37, 39]}}


@pytest.mark.parametrize(
    ("architecture", "change", "config", "message"),
    [
        (PLAIN, dict, {"model_args": {"global_pool": "avgmax"}}, "global_pool='avgmax': that is pooling by maximum"),
        (PLAIN, dict, {"model_args": {"global_pool": ""}}, "a label for every token.* --set global_pool=token"),
        (PLAIN, dict, {"model_args": {"attn_layer": "diff"}}, "differential attention"),
        (PLAIN, dict, {"model_args": {"act_layer": "relu"}}, "act_layer='relu': supported are 'gelu'"),
        (PLAIN, dict, {"model_args": {"scale_attn_norm": True}}, "scale_attn_norm without scale_mlp_norm"),
        (PLAIN, dict, {"model_args": {"patch_size": [8, 4]}}, "only square ones"),
        (PLAIN, dict, {"recipe": {"crop_mode": "border"}}, "crop_mode 'border' is not supported"),
        (PLAIN, without("head.weight"), {"num_classes": 5}, "says 5 classes, the head has 0"),
        (PLAIN, with_more({"head.weight": torch.zeros(5, 24)}), {}, "the head is all zeros"),
        (PLAIN, with_more({"pos_embed": torch.zeros(1, 19, 24)}), {}, "of 18 positions does not fit a square grid of"),
        (PLAIN, lambda _: OF_CLIP, {}, "an image tower of OpenAI or OpenCLIP under names"),
        (HYBRID, dict, OF_37_BY_39, r"size \(37, 39\) is not a multiple of patch_size 32"),  # each pixel is seen
        (ROPE, lambda state: without("v_proj.weight")(as_eva(state)), {}, r"missing: blocks.0.attn.qkv.weight"),
        (ROPE, as_eva, {"model_args": {"rope_type": "mrope"}}, f"{ROPE}.*rope_type='mrope': supported are 'cat', "),
        (ROPE, as_eva, {"model_args": {"rope_grid_indexing": "yz"}}, f"{ROPE}.*axes 'yz' is none of yx, xy"),
        ("eva02_tiny_patch14_224", with_norm_before, {}, "a norm before its pool and one after it"),
        (SAPIENS, of_sapiens, {}, r"attn.qkv.weight is \(56, 24\), not \(72, 24\)"),
    ],
)
def test_refusals_say_why(tmp_path, architecture, change, config, message):
    _, state = toy(architecture)
    with pytest.raises(CheckpointError, match=message):
        load(tmp_path, change(state), architecture, **config)


def test_an_unknown_architecture_is_refused(tmp_path):
    state = {"fc.weight": torch.ones(5, 24)}
    with pytest.raises(CheckpointError, match="architecture resnet50 is none of the 279 plain Vision Transformers"):
        load(tmp_path, state, "resnet50")


def test_a_head_of_zeros_can_be_left_out(plain):
    """Files that were published for fine-tuning have one."""
    zeros = plain(also={"head.weight": torch.zeros(5, 24)})
    assert load_checkpoint(zeros, overrides={"num_classes": "0"}).config.num_classes == 0
    with pytest.raises(CheckpointError, match="the head has 5 classes; 0 leaves the head out"):
        load_checkpoint(zeros, overrides={"num_classes": "3"})
    with pytest.raises(CheckpointError, match="no classes to name"):
        load_checkpoint(zeros, overrides={"num_classes": "0"}, labels="none")


def test_projections_of_clip_are_no_classes(tmp_path):
    model, state = toy("vit_base_patch16_clip_224", num_classes=512)
    published = config_of("vit_base_patch16_clip_224", recipe={"tag": "openai"})
    checkpoint = load_checkpoint(write(tmp_path, state, published))
    assert checkpoint.labels == ()
    assert checkpoint.config.embedding == 512
    assert_same(checkpoint.model, model)  # timm's own output is the projection
    assert len(load_checkpoint(tmp_path, overrides={"projection": "False"}).labels) == 512
    for tuned in ({"label_names": [f"thing {i}" for i in range(512)]}, {"recipe": {"tag": "laion2b_ft_in1k"}}):
        assert len(load(tmp_path, state, "vit_base_patch16_clip_224", **tuned).labels) == 512


def test_openclip_describes_its_tower_and_may_project_its_output(tmp_path):
    """open_clip/timm_model.py: the network without a head, and a linear layer after it."""
    model, state = toy("vit_base_patch16_224", global_pool="avg", num_classes=0)
    projection = torch.randn(8, SMALL["embed_dim"])
    tensors = {f"visual.trunk.{key}": tensor for key, tensor in state.items()}
    tensors |= {"visual.head.proj.weight": projection, "logit_scale": torch.ones(())}
    vision = {"timm_model_name": "vit_base_patch16_224", "image_size": 32}  # its timm_pool is avg by default
    stated = {"model_cfg": {"embed_dim": 8, "vision_cfg": vision}, "preprocess_cfg": {"mean": [0.1, 0.2, 0.3]}}
    folder = write(tmp_path, tensors)
    (folder / "open_clip_config.json").write_text(json.dumps(stated))
    checkpoint = load_checkpoint(folder, overrides=SIZES)
    images = torch.randn(2, 3, 32, 32)
    torch.testing.assert_close(checkpoint.model(images), model(images) @ projection.T)
    assert (checkpoint.labels, checkpoint.config.pool, checkpoint.config.embedding) == ((), "mean", 8)
    assert (checkpoint.preprocessing.mean, checkpoint.preprocessing.interpolation) == ((0.1, 0.2, 0.3), "bicubic")

    tensors["visual.head.mlp.fc1.weight"] = torch.ones(16, SMALL["embed_dim"])
    with pytest.raises(CheckpointError, match=r"has visual\.head\.mlp\.fc1\.weight: of OpenCLIP's heads, a linear"):
        load_checkpoint(write(folder, tensors), overrides=SIZES)


def test_openclip_states_the_image_size_of_networks_that_take_any(tmp_path):
    """timm's DINOv3 takes any size, and 256 by default (open_clip #1099)."""
    _, state = toy("vit_small_patch16_dinov3", num_classes=0)
    folder = write(tmp_path, {f"visual.trunk.{key}": tensor for key, tensor in state.items()})

    def described(**more):
        vision = {"timm_model_name": "vit_small_patch16_dinov3", "image_size": 32, "timm_proj": "none", **more}
        stated = {"model_cfg": {"embed_dim": 8, "vision_cfg": vision}}
        (folder / "open_clip_config.json").write_text(json.dumps(stated))
        return load_checkpoint(folder, overrides=SIZES)

    assert described(timm_pool="token").config.image_size == (32, 32)
    with pytest.raises(CheckpointError, match="timm_pool '' without a projection: a vector for every token"):
        described(timm_pool="")


@pytest.fixture
def lone(tmp_path):
    """A vit_base_patch16_224 without config.json."""
    return write(tmp_path, toy(PLAIN)[1]) / "model.safetensors"


def test_a_lone_file_needs_its_architecture(lone):
    sizes = "architecture=vit_base_patch8_224 --set embed_dim=24 --set depth=2 --set num_heads=1$"
    with pytest.raises(CheckpointError, match=f"No network of timm fits its tensors.* a guess: --set {sizes}"):
        load_checkpoint(lone)
    checkpoint = load_checkpoint(lone, overrides=SIZES | {"architecture": "vit_base_patch16_224.augreg_in21k"})
    assert checkpoint.config.image_size == checkpoint.preprocessing.size == (32, 32)  # as its positions are
    assert checkpoint.preprocessing.mean == (0.5, 0.5, 0.5)
    assert checkpoint.origins["mean"].where == "timm, vit_base_patch16_224.augreg_in21k"
    assert checkpoint.origins["image_size"].where == "number of positions"
    old_name = SIZES | {"architecture": "vit_base_patch16_224_in21k"}
    assert load_checkpoint(lone, overrides=old_name).name == checkpoint.name


def test_a_head_that_was_learned_reads_the_layer_before_it(tmp_path):
    """pre_logits of timm until 0.5, which timm leaves out of the weights that it publishes; their heads are zeros."""
    given = SIZES | {"architecture": "vit_base_patch16_224.augreg_in21k"}
    model, state = toy(given["architecture"])
    width = model.config.width
    hidden = torch.nn.Linear(width, width)
    more = {f"pre_logits.fc.{name}": tensor.detach() for name, tensor in hidden.named_parameters()}
    file = write(tmp_path, state | more) / "model.safetensors"
    images = torch.randn(2, 3, *model.config.image_size)
    right = model.head(hidden(model.read(model.encode(images))).tanh())
    torch.testing.assert_close(load_checkpoint(file, overrides=given).model(images), right)
    backbone = load_checkpoint(file, overrides=given | {"num_classes": "0"})
    torch.testing.assert_close(backbone.model(images), model.read(model.encode(images)))


@pytest.mark.parametrize(
    ("architecture", "pool"),
    [("vit_base_patch16_224.augreg_in21k", "avg"), ("eva02_base_patch14_224.mim_in22k", "token")],
)
def test_a_norm_that_does_not_go_with_the_pool_of_the_architecture_has_a_person_asked(tmp_path, architecture, pool):
    """create_model(..., global_pool=pool): the place of the norm changes with it."""
    model, state = toy(architecture, global_pool=pool)
    file = write(tmp_path, state) / "model.safetensors"
    given = SIZES | {"architecture": architecture}
    with pytest.raises(CheckpointError, match=f"^with (fc_)?norm the pool is not that of .* --set global_pool={pool}$"):
        load_checkpoint(file, overrides=given)
    assert_same(load_checkpoint(file, overrides=given | {"global_pool": pool}).model, model)


def test_an_oblong_table_whose_rows_happen_to_be_a_square(tmp_path):
    """8 patches and the class token are 9 rows: the token's is not taken for a patch of 3 by 3."""
    architecture = "vit_base_patch16_224.augreg_in21k"
    model, state = toy(architecture, image_size=(16, 32))
    file = write(tmp_path, state) / "model.safetensors"
    given = SIZES | {"architecture": architecture}
    assert_same(load_checkpoint(file, overrides=given | {"image_size": "16,32"}).model, model)
    for wrong, side in (({}, 28), ({"image_size": "24,24"}, 3)):
        with pytest.raises(CheckpointError, match=f"of 8 positions does not fit .*, nor one of {side} by {side}"):
            load_checkpoint(file, overrides=given | wrong)


def test_relative_mlps_are_computed_for_the_size_and_not_interpolated(tmp_path):
    _, state = toy("vit_relpos_small_patch16_224")
    for name in [name for name in state if "relative" in name]:
        del state[name]
    shapes = {"fc1.weight": (8, 2), "fc1.bias": (8,), "fc2.weight": (3, 8), "fc2.bias": (3,)}
    for i in range(2):
        state |= {f"blocks.{i}.attn.rel_pos.mlp.{name}": torch.randn(shape) for name, shape in shapes.items()}
    folder = write(tmp_path, state, config_of("vit_relpos_small_patch16_224"))
    small = load_checkpoint(folder).model
    large = load_checkpoint(folder, overrides={"image_size": "(48, 48)"}).model
    near, far = (m.blocks[0].attn.relative_position_bias_table.reshape(n, n, 3) for m, n in ((small, 7), (large, 11)))
    torch.testing.assert_close(far[2:-2, 2:-2], near)  # the same offset has the same bias
    lacking = without("blocks.1.attn.rel_pos.mlp.fc1.bias")(state)
    with pytest.raises(CheckpointError, match=r"missing: blocks\.1\.attn\.rel_pos\.mlp\.fc1\.bias"):
        load(tmp_path, lacking, "vit_relpos_small_patch16_224")


def test_the_name_of_the_norm_says_where_it_stands(tmp_path):
    model, state = toy("vit_base_patch16_224", global_pool="avg", fc_norm=False)
    assert "norm.weight" in state
    assert_same(load(tmp_path, state, PLAIN, model_args={"global_pool": "avg"}).model, model)


def test_background_classes_are_cut_off(tmp_path):
    model, state = toy("vit_base_patch16_224")
    state["head.weight"] = torch.cat([torch.ones(1, 24), state["head.weight"]])
    state["head.bias"] = torch.cat([torch.ones(1), state["head.bias"]])
    assert_same(load(tmp_path, state, PLAIN, recipe={"label_offset": 1}, label_names=NAMES).model, model)


TINY, ROTARY, AVERAGE = "vit_tiny_patch16_224", "vit_small_patch16_dinov3", {"global_pool": "avg"}


def test_a_training_checkpoint_is_preprocessed_as_its_command_line_says(tmp_path):
    """timm's data/config.py, resolve_data_config: arguments go before what is published."""
    given = {"mean": [0.4, 0.5, 0.6], "std": [0.2], "crop_pct": 1.0, "interpolation": "bilinear"}
    path = training_run(tmp_path, "vit_small_patch16_224", toy(TINY)[1], **given)
    description = describe_checkpoint(path, overrides=SIZES)
    recipe = description.preprocessing
    assert (recipe.mean, recipe.std) == ((0.4, 0.5, 0.6), (0.2, 0.2, 0.2))
    assert (recipe.resize_size, recipe.interpolation) == ((32, 32), "bilinear")
    assert description.origins["mean"].where == "args.mean of the file"


@pytest.mark.parametrize(
    ("arch", "network", "arguments"),
    [
        (TINY, AVERAGE, {"gp": "avg"}),
        (TINY, {"image_size": (16, 32)}, {"input_size": [3, 16, 32]}),  # as many rows as a square of 24 has patches
        (TINY, {"image_size": (16, 32)}, {"model_kwargs": {"img_size": (16, 32)}}),
        (ROTARY, {"image_size": (48, 48)}, {"img_size": 48}),  # no table of positions tells the size
    ],
)
def test_a_training_checkpoint_has_the_pool_and_the_size_of_its_command_line(tmp_path, arch, network, arguments):
    model, state = toy(arch, **network)
    checkpoint = load_checkpoint(training_run(tmp_path, arch, state, **arguments), overrides=SIZES)
    assert [checkpoint.origins[fact].where for fact in network] == ["args in the file"]
    assert_same(checkpoint.model, model)


@pytest.mark.parametrize("arch", ["vit_small_patch16_224", "hf-hub:timm/vit_small_patch16_224.augreg_in21k_ft_in1k"])
def test_without_arguments_a_training_checkpoint_has_timms_preprocessing(tmp_path, arch):
    """The first of the tags, which differ in mean and std: train.py asks for no tag."""
    description = describe_checkpoint(training_run(tmp_path, arch, toy(TINY)[1]), overrides=SIZES)
    assert description.preprocessing.mean == (0.5, 0.5, 0.5)
    assert description.origins["mean"].where == "timm, vit_small_patch16_224.augreg_in21k_ft_in1k"


@pytest.mark.parametrize(
    ("arch", "classes", "origin"),
    [
        # A thousand classes of one's own, fine-tuned from ImageNet: the tag does not say which classes there are.
        ("vit_small_patch16_224.augreg_in21k_ft_in1k", 1000, "ImageNet-1k, by the number of classes"),
        ("vit_base_patch32_clip_224.openai", 512, "numbered, as the checkpoint has no names"),  # never an embedding
    ],
)
def test_a_training_checkpoint_has_classes_of_its_own(tmp_path, arch, classes, origin):
    description = describe_checkpoint(training_run(tmp_path, arch, toy(TINY, num_classes=classes)[1]), overrides=SIZES)
    assert (len(description.labels), description.labels_from) == (classes, origin)


def test_an_arch_without_the_arguments_of_train_py_is_of_another_script(tmp_path):
    """facebookresearch/SLIP main_linear.py, and PyTorch's ImageNet example, resize to 256 and have ImageNet's mean."""
    torch.save({"epoch": 9, "arch": PLAIN, "state_dict": toy(PLAIN)[1]}, tmp_path / "linear_best.pt")
    with pytest.raises(CheckpointError, match=r"crop_pct depends on .* with one of .*\.augreg_in21k_ft_in1k"):
        describe_checkpoint(tmp_path / "linear_best.pt", overrides=SIZES)
    by_hand = {"mean": "0,0,0", "std": "1,1,1", "resize_size": "40,40"}
    recipe = describe_checkpoint(tmp_path / "linear_best.pt", overrides=SIZES | by_hand).preprocessing
    assert (recipe.mean, recipe.resize_size) == ((0, 0, 0), (40, 40))
