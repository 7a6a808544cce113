"""Hugging Face transformers: ...ForImageClassification and backbones, named as by version 4 or 5 (modeling_*.py).

Version 5 renamed the blocks (transformers #41693, conversion_mapping.py), and there are files from every stage of that
change, so the place of the blocks and each name in them are looked up separately.
"""

import re
from typing import Any

import torch
from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError, Description
from model.checkpoints.facts import Facts
from model.checkpoints.families.huggingface_images import describe_images
from model.checkpoints.families.huggingface_kinds import ACTIVATIONS, DEFAULTS, KINDS, TOWERS
from model.checkpoints.score import Score, note_score
from model.checkpoints.source import Source
from model.checkpoints.tensors import first_present, take_layer, without_slots
from model.config import ViTConfig
from model.positions import Grid, resize_relative_bias

PATCHES = (
    "embeddings.patch_embeddings.projection",
    "embeddings.patch_embedding",  # CLIP, SigLIP
    "embeddings.patch_embeddings",  # DINOv3, which has no classifier in transformers 5.23
)
BACKBONE = "embeddings.patch_embeddings.backbone.bit."
STEM = (("embedder.convolution.", "stem.conv."), ("embedder.", "stem."), ("encoder.", ""), (".layers.", ".blocks."))
PREFIX = {"cls_token": ("cls_token", "class_embedding"), "dist_token": ("distillation_token",)}
POSITIONS = ("position_embeddings", "position_embedding.weight")
NORM: dict[str, tuple[str, tuple[str, ...]]] = {
    "before_pool": ("norm", ("layernorm", "post_layernorm")),
    "after_pool": ("fc_norm", ("pooler.layernorm",)),
}
CLASSIFIER = ("ForImageClassification", "ForImageClassificationWithTeacher")  # how their classes' names end
POOLER = "pooler.dense"
HEADS = ("classifier", "cls_classifier")  # the second beside a distillation_classifier
BLOCKS = ("encoder.layer.", "encoder.layers.", "layers.")
# Names of our layers to theirs, those of version 4 first. Names in one string are stacked in that order.
BLOCK = {
    "norm1": ("layernorm_before", "norm1", "layer_norm1"),
    "attn.qkv": (
        "attention.attention.query attention.attention.key attention.attention.value",
        "attention.q_proj attention.k_proj attention.v_proj",
        "self_attn.q_proj self_attn.k_proj self_attn.v_proj",
    ),
    "attn.proj": ("attention.output.dense", "attention.o_proj", "self_attn.out_proj"),
    "norm2": ("layernorm_after", "norm2", "layer_norm2"),
    "mlp.fc1": ("intermediate.dense", "mlp.fc1", "mlp.weights_in", "mlp.gate_proj mlp.up_proj"),
    "mlp.fc2": ("output.dense", "mlp.fc2", "mlp.weights_out", "mlp.down_proj"),
}
LAYER_SCALE = {"ls1.gamma": ("lambda_1", "layer_scale1.lambda1"), "ls2.gamma": ("lambda_2", "layer_scale2.lambda1")}
TABLE = "relative_position_bias.relative_position_bias_table"
TABLES = (f"attention.attention.{TABLE}", TABLE)  # of one layer
SHARED_TABLES = (f"encoder.{TABLE}", "shared_position_bias.relative_position_bias_table")
# Microsoft's BEiT of ImageNet-22k numbers its 21,841 labels as Google's 21,843, without the two that it does not have
# (models/beit/convert_beit_unilm_to_pytorch.py): the classes are the labels in that order.
NUMBERS_22K = [number for number in range(21843) if number not in (9205, 15027)]


def recognises(source: Source) -> bool:
    return _patches(source) is not None


def describe(source: Source, facts: Facts) -> Description:
    config = source.config
    model_type = config.get("model_type")
    if model_type not in KINDS:
        raise CheckpointError(
            f"config.json has the model_type {model_type}; the supported image classifiers are {', '.join(KINDS)}"
            if config
            else "there is no config.json beside these weights of transformers: download it from their source"
        )
    stated, kind = _stated(source), KINDS[model_type]
    architecture = (config.get("architectures") or [f"a {model_type} model"])[0]
    head = next((name for name in HEADS if f"{name}.weight" in source), None)
    if head is None and (architecture.endswith(CLASSIFIER) or model_type in TOWERS):
        raise CheckpointError(f"{source.file.name} holds {architecture} without {HEADS[0]}.weight")
    if stated["num_channels"] != 3:
        raise CheckpointError(f"{architecture} takes {stated['num_channels']} channels, not red, green and blue")
    size = _pair(stated["image_size"])
    preprocessing = describe_images(source, facts, processor=kind.processor, size=size)
    if preprocessing.size != size and not kind.interpolates and "image_size" not in facts.overrides:
        raise CheckpointError(
            f"the image processor gives {preprocessing.size} and {architecture} takes {size}, which transformers "
            f"rejects: choose a size with --set image_size={size[0]},{size[1]}; positions are resized if needed"
        )
    switches = kind.switches(stated)
    classes = source.shape(f"{head}.weight")[0] if head else 0
    # Convolutions of a stem see what no patch covers.
    if "stem_layers" not in switches and "image_size" not in facts.overrides and stated["patch_size"]:
        preprocessing = preprocessing.in_patches(stated["patch_size"])
    if head is None:
        switches |= _pooler(source, switches)
    fields: dict[str, Any] = {
        "image_size": preprocessing.size,
        "patch_size": stated["patch_size"],
        "width": stated["hidden_size"],
        "depth": stated["num_hidden_layers"],
        "mlp_dim": stated["intermediate_size"],
        "heads": stated["num_attention_heads"],
        "num_classes": classes,
        "position_resize": "bicubic",
        "norm_eps": stated["layer_norm_eps"],
        "qkv_bias": stated["qkv_bias"],
        "activation": ACTIVATIONS.get(stated["hidden_act"], stated["hidden_act"]),
        "distillation_head": head == "cls_classifier",
        **switches,
    }
    for field, key in (("heads", "num_attention_heads"), ("norm_eps", "layer_norm_eps"), ("activation", "hidden_act")):
        found = "config.json" if key in _of_network(config) else f"transformers' default for {model_type}"
        fields[field] = facts.note(field, fields[field], architecture if field in switches else found)
    return Description(
        name=facts.note("name", source.name, "name of the checkpoint"),
        family="transformers",
        architecture=architecture,
        config=ViTConfig(**fields),
        preprocessing=preprocessing,
        labels=_labels(config.get("id2label"), classes) if head else (),
        labels_from="config.json",
        score=note_score(facts, classes, stated=_score(config.get("problem_type")), origin="config.json"),
    )


def tensors(source: Source, description: Description) -> dict[str, Tensor]:
    config, root = description.config, _root(source)
    places = [start + blocks for start in (root, "") for blocks in BLOCKS]  # version 5 also dropped a root
    blocks = next((place for place in places if any(key.startswith(f"{place}0.") for key in source.names)), places[0])
    taken = {
        **_embeddings(source, root, config),
        **take_layer(source, "patch_embed.proj", PATCHES, place=root),
    }
    if config.norm_pre:
        taken |= take_layer(source, "norm_pre", ["pre_layrnorm"], place=root)
    if config.final_norm in NORM:
        norm, theirs = NORM[config.final_norm]
        taken |= take_layer(source, norm, theirs, place=root)
    if config.num_classes:
        taken |= take_layer(source, "head", HEADS)
    if config.representation_size:
        taken |= take_layer(source, "pre_logits", [root + POOLER])
    if config.distillation_head:
        taken |= take_layer(source, "head_dist", ["distillation_classifier"])
    for i in range(config.depth):
        ours, block = f"blocks.{i}.", f"{blocks}{i}."
        for name, alternatives in BLOCK.items():
            taken |= take_layer(source, ours + name, alternatives, place=block)
        if config.layer_scale:
            for name, alternatives in LAYER_SCALE.items():
                taken[ours + name] = source.take(block + first_present(source, alternatives, place=block))
        if config.relative_bias:
            tables = [*(block + name for name in TABLES), *(root + name for name in SHARED_TABLES)]
            table = torch.stack([source.take(key) for key in tables if key in source]).sum(dim=0)
            table = resize_relative_bias(table, _grid(source, config), config.grid, config.position_resize)
            taken[f"{ours}attn.relative_position_bias_table"] = table
    # A mask token is for masked image modelling; ...ForImageClassification builds its model without a dense pooler, and
    # that of CLIP or SigLIP reads the patches before the pool of its image tower.
    source.ignore(re.escape(root) + r"(embeddings\.mask_token|pooler\.dense\.(weight|bias))")
    if source.config["model_type"] in TOWERS:
        source.ignore(re.escape(root) + r"(post_layernorm|head)\..*")
    source.ignore(r"decoder\..*")  # of ViTMAEForPreTraining
    source.ignore(r".*\.(relative_position_index|embeddings\.position_ids)")  # computed; early files contain them
    return taken


def _embeddings(source: Source, root: str, config: ViTConfig) -> dict[str, Tensor]:
    """Tokens before the patches with their positions added, positions of the patches, and the stem."""
    place = f"{root}embeddings."
    kept = config.class_token + config.distillation_token
    taken = {
        ours: _with_batch(source.take(place + first_present(source, theirs, place=place)))
        for ours, theirs in [*PREFIX.items()][:kept]
    }
    if config.positions == "learned":
        table = _with_batch(source.take(place + first_present(source, POSITIONS, place=place)))
        # (1, kept + N, D): registers have no position
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


def _with_batch(tensor: Tensor) -> Tensor:
    """Tokens with three dimensions: CLIP and SigLIP save a vector and a matrix."""
    return tensor[(None,) * (3 - tensor.ndim)]


def _pooler(source: Source, switches: dict[str, Any]) -> dict[str, Any]:
    """What `pooler_output` of a model without a classifier reads, as fields of ViTConfig. Dinov2Model takes the class
    token alone, ViTModel and DeiTModel put it through a layer with tanh.
    """
    fields: dict[str, Any] = {"pool": "cls"} if switches.get("pool") == "cls_mean" else {}
    dense = f"{_root(source)}{POOLER}.weight"
    return fields | ({"representation_size": source.shape(dense)[0]} if dense in source else {})


def _stated(source: Source) -> dict[str, Any]:
    """config.json with the defaults of its configuration class."""
    stated = {**DEFAULTS, **KINDS[source.config["model_type"]].defaults, **_of_network(source.config)}
    if isinstance(stated["patch_size"], list):
        stated["patch_size"] = stated["patch_size"][0]
    return stated


def _of_network(config: dict[str, Any]) -> dict[str, Any]:
    """What config.json says of the network: of CLIP and SigLIP the image tower has a part of its own."""
    of_tower: dict[str, Any] = config.get("vision_config") or {}
    return of_tower if config.get("model_type") in TOWERS else config


def _patches(source: Source) -> str | None:
    """The name of the weights of the patch embedding."""
    endings = tuple(f"{name}.weight" for name in PATCHES)
    return next((key for key in source.names if key.endswith(endings)), None)


def _root(source: Source) -> str:
    """The prefix of the names of the model without its head: "vit.", "vision_model." or nothing."""
    return (_patches(source) or "").partition("embeddings.patch_embedding")[0]


def _grid(source: Source, config: ViTConfig) -> Grid:
    """Rows and columns of the positions in the file."""
    height, width = _pair(_stated(source)["image_size"])
    return height // config.patch_size, width // config.patch_size


def _pair(size: int | list[int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def _labels(id2label: dict[str, Any] | None, classes: int) -> tuple[str, ...]:
    """Empty without names: LABEL_0, LABEL_1 and so on are what transformers writes then."""
    if not id2label:
        return ()
    labels = {int(number): str(label) for number, label in id2label.items()}
    numbers = sorted(labels)
    if len(numbers) != classes or numbers not in (list(range(classes)), NUMBERS_22K):
        raise CheckpointError(f"config.json's id2label has {len(labels)} labels, not one for each of {classes} classes")
    names = tuple(labels[number] for number in numbers)
    return () if names == tuple(f"LABEL_{i}" for i in range(classes)) else names


def _score(problem_type: str | None) -> Score | None:
    """As in pipelines/image_classification.py. Raises CheckpointError for a regression."""
    if problem_type == "regression":
        raise CheckpointError("config.json says problem_type regression: the outputs are numbers, not scores of labels")
    known: dict[str | None, Score] = {
        "multi_label_classification": "sigmoid",
        "single_label_classification": "softmax",
    }
    return known.get(problem_type)
