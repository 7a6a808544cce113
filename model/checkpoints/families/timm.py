"""timm: config.json as `save_for_hf` writes it (models/_hub.py), a file of its train.py, or another lone file and its
architecture given by hand.

No file contains the switches of a network: timm's architecture names imply them, see timm_architectures.py. Tensors
have the names of model/vit.py except for those in NAMES.
"""

import re
from dataclasses import replace
from typing import Any

from model.checkpoints.checkpoint import CheckpointError, Description, Origin
from model.checkpoints.facts import Facts
from model.checkpoints.families import dinov3, facebook
from model.checkpoints.families.huggingface_head import score_of
from model.checkpoints.families.openclip import CONFIG, OTHERS, vision_cfg
from model.checkpoints.families.openclip import preprocessing as openclip_preprocessing
from model.checkpoints.families.timm_architectures import Architecture, find, named_in
from model.checkpoints.families.timm_arguments import check_classes, check_stated, stated_arguments, with_arguments
from model.checkpoints.families.timm_images import check_channels, image_size, in_whole_patches
from model.checkpoints.families.timm_layers import check_layers, grid_of_file
from model.checkpoints.families.timm_layers import tensors as tensors
from model.checkpoints.families.timm_likeness import need_architecture
from model.checkpoints.families.timm_network import final_norm, network
from model.checkpoints.families.timm_preprocessing import preprocessing
from model.checkpoints.imagenet import names_of
from model.checkpoints.label_files import by_index
from model.checkpoints.source import Source
from model.checkpoints.tensors import NOTHING, pair

FAMILY = "timm"
HEADS = {"head": NOTHING, "head_dist": NOTHING}
# Classes of the ImageNets as tags name them: 21k is Google's or 21k-P. Heads of other sizes may be embeddings.
IMAGENETS = {"in1k": (1000,), "in12k": (11821,), "in21k": (21843, 11221), "in22k": (21841,)}
CLASSES = tuple(classes for numbers in IMAGENETS.values() for classes in numbers)

NAMES = (
    (r"^visual\.trunk\.", ""),  # an image tower of OpenCLIP
    (r"^visual\.head\.proj\.", "pre_logits."),
    (r"patch_embed\.backbone\.(conv|norm)\.", r"patch_embed.backbone.stem.\1."),  # a stem of the root alone
    (r"blocks\.(\d+)\.gamma_([12])", r"blocks.\1.ls\2.gamma"),  # BEiT, and Facebook's DeiT-3
    (r"\.attn\.([qkv])_proj\.", r".attn.\1."),  # EVA
    (r"\.attn\.([qv])_bias$", r".attn.\1.bias"),  # BEiT, whose keys have none
    (r"^(rel_pos_bias|shared_rel_pos)\.", "rel_pos."),  # of all blocks
    (r"rel_pos\.(relative_position_bias_table)$", r"\1"),
    (r"\.mlp\.fc1_x\.", ".mlp.fc1."),  # SwiGLU
    (r"blocks\.(\d+)\.in_norm\.", r"blocks.\1.norm1."),  # this and the rest: ParallelScalingBlock
    (r"\.mlp_bias$", ".mlp.fc1.bias"),
    (r"blocks\.(\d+)\.([qk])_norm\.", r"blocks.\1.attn.\2_norm."),
    (r"blocks\.(\d+)\.attn_out_proj\.", r"blocks.\1.attn.proj."),
    (r"blocks\.(\d+)\.mlp_out_proj\.", r"blocks.\1.mlp.fc2."),
    (r"blocks\.(\d+)\.ls\.gamma", r"blocks.\1.ls1.gamma"),
)
HIDDEN = (r"^pre_logits\.fc\.", "pre_logits.")  # a layer before the head, until timm 0.5
DROPPED = (
    r".*\.(relative_position_index|rel_coords_log)"  # computed from the image size; older versions saved them
    r"|(.*\.)?rope\.(?!freqs$).*"  # likewise; timm does not load them (models/eva.py, checkpoint_filter_fn)
)
# With which timm's train.py writes the name of an architecture as `arch` (utils/checkpoint_saver.py). Other scripts
# call theirs so too.
OF_TRAIN_PY = {"mean", "std", "crop_pct", "interpolation"}


def recognises(source: Source) -> bool:
    blocks = re.compile(r"(visual\.trunk\.)?blocks\.0\.(attn\.(qkv|q_proj)|in_proj|attns\.0\.attn\.qkv)\.weight")
    named = any(blocks.fullmatch(key) for key in source.names)
    return "architecture" in source.config or named or _is_clip(source)


def describe(source: Source, facts: Facts) -> Description:
    if _is_clip(source):
        raise CheckpointError(
            "this is an image tower of OpenAI or OpenCLIP under names that are not supported: take the model's folder "
            "for transformers, or open_clip_model.safetensors with its open_clip_config.json"
        )
    config, tower, other = _described(source), _is_tower(source), facebook.member_of(source)
    if dinov3.is_original(source):  # timm's filter takes them too (models/eva.py)
        source.rename(dinov3.NAMES, dropping=dinov3.TRAINING_ONLY)
    # timm drops this layer of its published weights (checkpoint_filter_fn), whose heads are zeros; a head that was
    # learned since reads it.
    hidden = facts.serves_head and not config and {"pre_logits.fc.weight", "head.weight"} <= {*source.names}
    names, dropped = ([*NAMES, HIDDEN], DROPPED) if hidden else (NAMES, rf"{DROPPED}|{HIDDEN[0]}.*")
    source.rename(names, dropping=f"{dropped}|{OTHERS}" if tower else dropped)
    stated = config.get("pretrained_cfg", config)  # the legacy form has one level (_parse_model_cfg)
    if "architecture" in config:
        origin = "config.json" if "architecture" in source.config else CONFIG
        named = facts.resolve("architecture", config["architecture"], Origin.stated(origin))
    elif scripts := named_in(source):
        named = facts.resolve("architecture", scripts, Origin.stated("the file"))
    else:
        named = need_architecture(source, facts, other=other.name if other else "")
    architecture, tag = find(named)
    facts.network = facts.origins["architecture"]._replace(where=f"timm's {architecture.name}")
    tag = tag or stated.get("tag")
    trained = named == named_in(source)  # by a script: a tag says what it began with, not which classes it has

    outputs = source.shape("head.weight")[0] if "head.weight" in source else 0
    # timm cuts off background classes, which come first
    num_classes = outputs - (stated.get("label_offset") or 0) if outputs else 0
    if facts.serves_head:
        check_classes(source, config, stated, num_classes)
    labels, wordnet, problem = _labels(config, stated, num_classes)
    projects = not tower and not labels and not problem and not trained and _is_projection(architecture, tag, outputs)
    if projects:  # a person who has fine-tuned it to as many classes can say so
        projects = facts.resolve("projection", projects, Origin.guessed(f"the published head of {architecture.name}"))
    projected = None if hidden else _projection(source) or (outputs if projects or tower else 0) or None
    num_classes = 0 if projected else num_classes
    changes = stated_arguments(source, config)
    architecture = _changed(source, changes, "config.json" if config else "args in the file", facts, architecture)
    by_timm = trained and source.arguments.keys() >= OF_TRAIN_PY
    began = tag or (next(iter(architecture.tags), None) if by_timm else None)  # without a tag, timm takes the first
    published = architecture.published(began, outputs)
    check_stated(source, config)
    check_channels(source, architecture, stated)
    size = image_size(source, config, facts, architecture, changes, stated, published)
    if tower and source.json(CONFIG):
        recipe = openclip_preprocessing(source, facts, size)
    else:
        by_tag = facts.network if began in architecture.tags else Origin.guessed("")
        recipe = preprocessing(facts, size, stated, published, by_tag=by_tag)
    if "image_size" not in facts.overrides:
        recipe = in_whole_patches(recipe, architecture)
    vit = replace(
        network(architecture, image_size=recipe.size, num_classes=num_classes),
        representation_size=source.shape("pre_logits.weight")[0] if hidden else projected,
        representation="linear" if projected else "tanh",
        representation_bias=not projected or "head.bias" in source or "pre_logits.bias" in source,
    )
    check_layers(source, architecture)
    return Description(
        name=facts.resolve(
            "name", ".".join(filter(None, (architecture.name, tag))), Origin.read("architecture and tag")
        ),
        family=FAMILY,
        architecture=architecture.name,
        config=vit,
        grid=grid_of_file(source, architecture, vit),
        preprocessing=recipe,
        labels=labels,
        wordnet=wordnet,
        labels_problem=problem,
        labels_from="config.json",
        dataset="" if trained else _dataset(tag, num_classes),
        score=score_of(config, facts, num_classes),  # TimmWrapper of transformers states it
    )


def _is_tower(source: Source) -> bool:
    """A timm network in a file of OpenCLIP, giving embeddings: open_clip/timm_model.py TimmModel, release 3.3.0."""
    return any(name.startswith("visual.trunk.") for name in source.names)


def _described(source: Source) -> dict[str, Any]:
    """config.json, and what open_clip_config.json says beside it, under timm's names.

    Raises CheckpointError for a tower that gives a vector for every token.
    """
    stated = vision_cfg(source) if _is_tower(source) else {}
    if "timm_model_name" not in stated:
        return source.config
    size, pool = pair(stated.get("image_size", 224)), stated.get("timm_pool", "avg")
    if pool == "" and stated.get("timm_proj", "linear") not in ("linear", "mlp"):
        raise CheckpointError(f"{CONFIG} has timm_pool {pool!r} without a projection: a vector for every token")
    return {
        "architecture": stated["timm_model_name"],
        "global_pool": pool,
        "model_args": {"img_size": size},
        **source.config,
        "pretrained_cfg": {**source.config.get("pretrained_cfg", {}), "input_size": [3, *size]},
    }


def _projection(source: Source) -> int | None:
    """Width of the embedding, if a layer after the network gives it; the names of `source` are ours.

    Raises CheckpointError for other layers.
    """
    if other := next((name for name in source.names if name.startswith("visual.head.")), None):
        raise CheckpointError(f"{source.file.name} has {other}: of OpenCLIP's heads, a linear projection is supported")
    return source.shape("pre_logits.weight")[0] if "pre_logits.weight" in source else None


def _is_clip(source: Source) -> bool:
    """The tower of families/openclip.py under other names, or without its class token."""
    return "visual.conv1.weight" in source or ("conv1.weight" in source and "class_embedding" in source)


def _changed(
    source: Source, stated: dict[str, Any], origin: str, facts: Facts, architecture: Architecture
) -> Architecture:
    """The architecture with other arguments: those stated at `origin`, those that the names of tensors imply, and those
    set by hand.
    """
    changes = dict(stated)
    implied = final_norm(with_arguments(architecture, changes))
    # The pool may have been changed after the norm was built; the name of the norm says where it is.
    norms = [name for name in ("norm", "fc_norm") if f"{name}.weight" in source]
    if architecture.model_class == "Eva":
        changes.update(use_fc_norm="fc_norm" in norms, use_post_transformer_norm="norm" in norms)
    elif len(norms) == 1:
        changes["use_fc_norm" if architecture.model_class == "Beit" else "fc_norm"] = norms[0] == "fc_norm"
    changed = with_arguments(architecture, changes)
    known = changed.arguments
    if "global_pool" not in changes and {implied, final_norm(changed)} == {"before_pool", "after_pool"}:
        why = f"with {norms[0]} the pool is not that of {architecture.name}: give it, as in this example"
        (known["global_pool"],) = facts.need({"global_pool": "avg" if norms == ["fc_norm"] else "token"}, why=why)
    pool_origin = Origin.stated(origin) if "global_pool" in stated else facts.network
    changes["global_pool"] = facts.resolve("global_pool", known["global_pool"], pool_origin)
    for name in facts.overrides.keys() & known.keys() - {"img_size", "global_pool"}:
        changes[name] = facts.resolve(name, known[name], facts.network)
    return with_arguments(architecture, changes)


def _is_projection(architecture: Architecture, tag: str | None, outputs: int) -> bool:
    """Whether a head of so many outputs is that of a published image tower: an embedding to compare with text."""
    alike = (published == outputs for name, (published, _) in architecture.tags.items() if tag in (None, name))
    return outputs > 0 and outputs not in CLASSES and any(alike)


def _dataset(tag: str | None, num_classes: int) -> str:
    """The tag, if the last ImageNet in it, such as in1k in augreg_in21k_ft_in1k, has so many classes."""
    named = re.findall(r"in\d+k", tag or "")
    return f"timm's tag {tag}" if named and num_classes in IMAGENETS.get(named[-1], ()) else ""


def _labels(
    config: dict[str, Any], stated: dict[str, Any], num_classes: int
) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Labels, and their WordNet ids if those are the names that they describe; or why they cannot be read.

    `label_names` is a list, or a dict from class to name, with or without gaps; `label_descriptions` has a longer text
    for a name.
    """
    names = config.get("label_names") or stated.get("label_names") or stated.get("labels") or ()
    words = config.get("label_descriptions") or stated.get("label_descriptions") or {}
    if not isinstance(words, dict):
        return (), (), f"config.json's label_descriptions are {type(words).__name__}, not an object of names and texts"
    if isinstance(names, dict):
        names = {str(i): f"class {i}" for i in range(num_classes)} | names
    try:
        names = by_index(dict(enumerate(names)) if isinstance(names, list | tuple) else names)
    except ValueError as error:
        return (), (), f"config.json's label_names cannot be read: {error}"
    described = all(name in words for name in names) and names_of(names) is not None
    return tuple(str(words.get(name, name)) for name in names), names if described else (), ""
