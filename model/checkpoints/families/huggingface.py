"""Hugging Face transformers: ...ForImageClassification and backbones, named as by version 4 or 5 (modeling_*.py).

Version 5 renamed the blocks (transformers #41693, conversion_mapping.py), and there are files from every stage of that
change, so the place of the blocks and each name in them are looked up separately.
"""

import re
from typing import Any

import torch
from torch import Tensor

from model.checkpoints.checkpoint import Description
from model.checkpoints.facts import Facts
from model.checkpoints.families.huggingface_config import CLASSIFIER, describe_model, kind_of, pair
from model.checkpoints.families.huggingface_kinds import DEFAULTS, KINDS
from model.checkpoints.source import Source
from model.checkpoints.tensors import first_present, take_layer, without_slots
from model.config import ViTConfig
from model.positions import Grid, resize_relative_bias

PATCHES = ("embeddings.patch_embeddings.projection", "embeddings.patch_embeddings")  # the second: DINOv3
BACKBONE = "embeddings.patch_embeddings.backbone.bit."
STEM = (("embedder.convolution.", "stem.conv."), ("embedder.", "stem."), ("encoder.", ""), (".layers.", ".blocks."))
WEIGHTS = tuple(f"{name}.weight" for name in PATCHES)
PREFIX = {"cls_token": "cls_token", "dist_token": "distillation_token"}
NORM = {"before_pool": ("norm", ("layernorm", "norm")), "after_pool": ("fc_norm", ("pooler.layernorm",))}
POOLER = "pooler.dense"
HEADS = (CLASSIFIER, "cls_classifier")  # the second beside a distillation_classifier
BLOCKS = ("encoder.layer.", "encoder.layers.", "layers.", "layer.", "model.layer.")  # the last two: DINOv3
# Names of our layers to theirs, those of version 4 first. Names in one string are stacked in that order.
BLOCK = {
    "norm1": ("layernorm_before", "norm1"),
    "attn.qkv": (
        "attention.attention.query attention.attention.key attention.attention.value",
        "attention.q_proj attention.k_proj attention.v_proj",
    ),
    "attn.proj": ("attention.output.dense", "attention.o_proj"),
    "norm2": ("layernorm_after", "norm2"),
    "mlp.fc1": ("intermediate.dense", "mlp.fc1", "mlp.weights_in", "mlp.gate_proj mlp.up_proj", "mlp.up_proj"),
    "mlp.fc2": ("output.dense", "mlp.fc2", "mlp.weights_out", "mlp.down_proj"),
}
LAYER_SCALE = {"ls1.gamma": ("lambda_1", "layer_scale1.lambda1"), "ls2.gamma": ("lambda_2", "layer_scale2.lambda1")}
TABLE = "relative_position_bias.relative_position_bias_table"
TABLES = (f"attention.attention.{TABLE}", TABLE)  # of one layer
SHARED_TABLES = (f"encoder.{TABLE}", "shared_position_bias.relative_position_bias_table")


def recognises(source: Source) -> bool:
    return any(key.endswith(WEIGHTS) for key in source.names)


def describe(source: Source, facts: Facts) -> Description:
    kind = kind_of(source.config, KINDS, supported="image classifiers")
    stated, head = _stated(source), next((name for name in HEADS if f"{name}.weight" in source), None)
    fields = kind.switches(stated)
    # The convolutions of a stem see what no patch covers.
    in_patches = "stem_layers" not in fields and "image_size" not in facts.overrides
    if head is None:
        fields |= _pooler(source, fields)
    return describe_model(
        source,
        facts,
        stated,
        {
            "patch_size": stated["patch_size"],
            "qkv_bias": stated["qkv_bias"],
            "distillation_head": head == HEADS[1],
            **fields,
        },
        written=source.config,
        head=head,
        processor=kind.processor,
        interpolates=kind.interpolates,
        patch=stated["patch_size"] if in_patches else None,
    )


def tensors(source: Source, description: Description) -> dict[str, Tensor]:
    config, root = description.config, _root(source)
    places = [start + blocks for start in (root, "") for blocks in BLOCKS]  # version 5 also dropped a root
    blocks = next((place for place in places if any(key.startswith(f"{place}0.") for key in source.names)), places[0])
    norm, their_norms = NORM[config.final_norm]
    taken = {
        **_embeddings(source, root, config),
        **take_layer(source, "patch_embed.proj", PATCHES, place=root),
        **take_layer(source, norm, their_norms, place=root),
    }
    if any(f"{name}.weight" in source for name in HEADS):
        taken |= take_layer(source, "head", HEADS)
    if config.representation_size:
        taken |= take_layer(source, "pre_logits", [root + POOLER])
    if config.distillation_head:
        taken |= take_layer(source, "head_dist", ["distillation_classifier"])
    for i in range(config.depth):
        ours, theirs = f"blocks.{i}.", f"{blocks}{i}."
        for name, alternatives in BLOCK.items():
            taken |= take_layer(source, ours + name, alternatives, place=theirs)
        if config.layer_scale:
            for name, alternatives in LAYER_SCALE.items():
                taken[ours + name] = source.take(theirs + first_present(source, alternatives, place=theirs))
        if config.relative_bias:
            tables = [*(theirs + name for name in TABLES), *(root + name for name in SHARED_TABLES)]
            table = torch.stack([source.take(key) for key in tables if key in source]).sum(dim=0)
            table = resize_relative_bias(table, _grid(source, config), config.grid, config.position_resize)
            taken[f"{ours}attn.relative_position_bias_table"] = table
    # A mask token is for masked image modelling; ...ForImageClassification builds its model without a dense pooler.
    source.ignore(re.escape(root) + r"(embeddings\.mask_token|pooler\.dense\.(weight|bias))")
    source.ignore(r"decoder\..*")  # of ViTMAEForPreTraining
    source.ignore(r".*\.relative_position_index")  # computed from the grid; early files contain it
    return taken


def _embeddings(source: Source, root: str, config: ViTConfig) -> dict[str, Tensor]:
    """Tokens before the patches with their positions added, positions of the patches, and the stem."""
    place = f"{root}embeddings."
    kept = config.class_token + config.distillation_token
    taken = {ours: source.take(place + theirs) for ours, theirs in [*PREFIX.items()][:kept]}
    if config.positions == "learned":
        table = source.take(f"{place}position_embeddings")  # (1, kept + N, D): registers have no position
        taken = without_slots(table, taken, _grid(source, config), config)
    if config.registers:
        taken["reg_token"] = source.take(f"{place}register_tokens")
    if config.stem_layers is not None:
        for key in [key for key in source.names if key.startswith(root + BACKBONE)]:
            name = key.removeprefix(root + BACKBONE)
            for theirs, ours in STEM:
                name = name.replace(theirs, ours)
            taken[f"patch_embed.backbone.{name}"] = source.take(key)
    return taken


def _pooler(source: Source, switches: dict[str, Any]) -> dict[str, Any]:
    """What `pooler_output` of a model without a classifier reads, as fields of ViTConfig. Dinov2Model takes the class
    token alone, ViTModel and DeiTModel put it through a layer with tanh.
    """
    fields: dict[str, Any] = {"pool": "cls"} if switches.get("pool") == "cls_mean" else {}
    dense = f"{_root(source)}{POOLER}.weight"
    return fields | ({"representation_size": source.shape(dense)[0]} if dense in source else {})


def _stated(source: Source) -> dict[str, Any]:
    """config.json with the defaults of its configuration class."""
    stated = {**DEFAULTS, **KINDS[source.config["model_type"]].defaults, **source.config}
    if isinstance(stated["patch_size"], list):
        stated["patch_size"] = stated["patch_size"][0]
    return stated


def _root(source: Source) -> str:
    """The prefix of the names of the model without its head: "vit.", "dinov2." or nothing."""
    key = next(key for key in source.names if key.endswith(WEIGHTS))
    return key[: key.rindex("embeddings.patch")]


def _grid(source: Source, config: ViTConfig) -> Grid:
    """Rows and columns of the positions in the file."""
    height, width = pair(_stated(source)["image_size"])
    return height // config.patch_size, width // config.patch_size
