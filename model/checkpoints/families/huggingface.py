"""Hugging Face transformers: image classifiers, backbones and image towers, named as by version 4 or 5 (modeling_*.py).

Version 5 renamed the blocks (transformers #41693, conversion_mapping.py), and there are files from every stage of that
change, so the place of the blocks and each name in them change separately. CLIP, MetaCLIP 2 and SigLIP are in
models/clip, models/metaclip_2 and models/siglip; SigLIP 2 of a fixed resolution is stored as SigLIP.
"""

import re
from typing import Any

from model.checkpoints.checkpoint import CheckpointError, Description
from model.checkpoints.facts import Facts, Score, resolve_score
from model.checkpoints.families.huggingface_images import describe_images
from model.checkpoints.families.huggingface_kinds import ACTIVATIONS, DEFAULTS, KINDS, SIGLIP, Json
from model.checkpoints.source import Source
from model.checkpoints.tensors import NOTHING, State, grid_of, join_blocks, pair, share_relative_table
from model.config import ViTConfig

PATCHES = r"(.*\.)?embeddings\.patch_embedding(s\.projection|s|)\.weight"  # of ViT, DINOv3 and CLIP
NAMES = (
    (r"^(.*\.)?vision_model\.", ""),
    (r"^(.*\.)?embeddings\.", ""),
    (r"^class_embedding$", "cls_token"),
    (r"^distillation_token$", "dist_token"),
    (r"^register_tokens$", "reg_token"),
    (r"^position_embedding(s|\.weight)$", "pos_embed"),
    (r"^patch_embedding(s\.projection|s|)\.(?=weight|bias)", "patch_embed.proj."),
    (r"^patch_embeddings\.backbone\.bit\.embedder\.convolution\.", "patch_embed.backbone.stem.conv."),
    (r"^patch_embeddings\.backbone\.bit\.embedder\.", "patch_embed.backbone.stem."),
    (r"^patch_embeddings\.backbone\.bit\.encoder\.(stages\.\d+)\.layers\.", r"patch_embed.backbone.\1.blocks."),
    (r"^(.*\.)?(encoder\.)?layers?\.(?=\d)", "blocks."),
    (r"\.(layernorm_before|layer_norm1)\.", ".norm1."),
    (r"\.(layernorm_after|layer_norm2)\.", ".norm2."),
    (r"\.attention\.(attention\.query|q_proj)\.", ".attn.q."),
    (r"\.attention\.(attention\.key|k_proj)\.", ".attn.k."),
    (r"\.attention\.(attention\.value|v_proj)\.", ".attn.v."),
    (r"\.attention\.(output\.dense|o_proj)\.", ".attn.proj."),
    (r"\.self_attn\.([qkv])_proj\.", r".attn.\1."),
    (r"\.self_attn\.out_proj\.", ".attn.proj."),
    (r"\.mlp\.gate_proj\.", ".mlp.fc1_g."),
    (r"\.(intermediate\.dense|mlp\.weights_in|mlp\.up_proj)\.", ".mlp.fc1."),
    (r"\.(output\.dense|mlp\.weights_out|mlp\.down_proj)\.", ".mlp.fc2."),
    (r"\.lambda_([12])$", r".ls\1.gamma"),
    (r"\.layer_scale([12])\.lambda1$", r".ls\1.gamma"),
    (r"^(blocks\.\d+\.).*relative_position_bias_table$", r"\1attn.relative_position_bias_table"),
    (r"^(?!blocks\.).*relative_position_bias_table$", "relative_position_bias_table"),  # of all layers
    (r"^pre_layrnorm\.", "norm_pre."),  # transformers spells it so
    (r"^post_layernorm\.", "norm."),
    (r"^head\.probe$", "attn_pool.latent"),
    (r"^head\.attention\.in_proj_", "attn_pool.qkv."),
    (r"^head\.attention\.out_proj\.", "attn_pool.proj."),
    (r"^head\.layernorm\.", "attn_pool.norm."),
    (r"^head\.mlp\.", "attn_pool.mlp."),
    (r"^(.*\.)?pooler\.layernorm\.", "fc_norm."),
    (r"^((.*\.)?pooler\.dense|visual_projection)\.", "pre_logits."),
    (r"^(?!patch_embed\.|attn_pool\.)(.*\.)?(layernorm|norm)\.", "norm."),
    (r"^(cls_)?classifier\.", "head."),  # the first beside a distillation_classifier
    (r"^distillation_classifier\.", "head_dist."),
)
# A mask token is for masked image modelling, a decoder is of ViTMAEForPreTraining. The index is computed from the grid;
# early files contain it.
DROPPED = r"(.*\.)?embeddings\.mask_token|decoder\..*|.*\.relative_position_index"
HEADS = dict.fromkeys(("classifier", "cls_classifier", "distillation_classifier"), NOTHING)
OF_TEXTS = r"text_model\..*|text_projection\.weight|logit_(scale|bias)|.*\.position_ids"
# As in pipelines/image_classification.py.
SCORES: dict[str | None, Score] = {"multi_label_classification": "sigmoid", "single_label_classification": "softmax"}
TEXTS = "text_model.embeddings.token_embedding.weight"
POOLER = "pooler_output"
CLASSIFYING = ("ForImageClassification", "ForImageClassificationWithTeacher")  # how classes with a head are named

# Microsoft's BEiT of ImageNet-22k numbers its 21,841 labels as Google's 21,843, without the two that it does not have
# (models/beit/convert_beit_unilm_to_pytorch.py): the classes are the labels in that order.
NUMBERS_22K = [number for number in range(21843) if number not in (9205, 15027)]


def recognises(source: Source) -> bool:
    return any(re.fullmatch(PATCHES, name) for name in source.names)


def describe(source: Source, facts: Facts) -> Description:
    """All facts are in config.json, or follow from its model_type."""
    model_type = source.config.get("model_type", "")
    if model_type not in KINDS:
        raise CheckpointError(
            f"config.json has the model_type {model_type or None}; supported are {', '.join(KINDS)}"
            if source.config
            else "there is no config.json beside these weights of transformers: download it from their source"
        )
    kind, tower = KINDS[model_type], _tower(source)
    stated = {**DEFAULTS, **kind.defaults, **tower}  # with the defaults of its class
    size, (patch_size, _) = pair(stated["image_size"]), pair(stated["patch_size"])
    has_texts, has_bias = TEXTS in source, "logit_bias" in source
    source.rename(NAMES, dropping=f"{DROPPED}|{OF_TEXTS}" if kind.compares else DROPPED)
    architectures = source.config.get("architectures")
    architecture: str = architectures[0] if architectures else f"a {model_type} model"
    classes = source.shape("head.weight")[0] if "head.weight" in source else 0
    dense = source.shape("pre_logits.weight")[0] if "pre_logits.weight" in source else None
    if not classes and architecture.endswith(CLASSIFYING):
        raise CheckpointError(f"{source.file.name} holds {architecture} without classifier.weight")
    if not classes and stated.get("vision_use_head") is False:
        raise CheckpointError(f"{architecture} has no attention pool (vision_use_head), and so no output to serve")
    pool = _pool_of_other_head(source, facts, architecture, comparing=bool(kind.compares)) if classes else None
    if stated["num_channels"] != 3:
        raise CheckpointError(f"{architecture} takes {stated['num_channels']} channels, not red, green and blue")
    fields = kind.switches(stated | {"patch_size": patch_size})
    if not classes:
        fields |= {**(kind.headless or {}), "representation_size": dense}
    elif pool:
        fields |= {"pool": "cls" if pool == POOLER else pool, "representation_size": dense if pool == POOLER else None}
    if kind.compares:
        fields["patch_bias"] = "patch_embed.proj.bias" in source
        fields["head_bias"] = classes > 0 or has_bias
    preprocessing = describe_images(source, facts, processor=kind.processor, size=size)
    chosen = "image_size" in facts.overrides
    if preprocessing.size != size and not (kind.interpolates or chosen):
        raise CheckpointError(
            f"the image processor gives {preprocessing.size} and {architecture} takes {size}, which transformers "
            f"rejects: choose a size with --set image_size={size[0]},{size[1]}; positions are resized if needed"
        )
    if kind.compares or not ("stem_layers" in fields or chosen):  # a stem's convolutions see what no patch covers
        preprocessing = preprocessing.in_patches(patch_size)
    values = {
        "image_size": preprocessing.size,
        "patch_size": patch_size,
        "width": stated["hidden_size"],
        "depth": stated["num_hidden_layers"],
        "mlp_dim": stated["intermediate_size"],
        "heads": stated["num_attention_heads"],
        "num_classes": classes,
        "position_resize": "bicubic",
        "norm_eps": stated["layer_norm_eps"],
        "qkv_bias": stated["qkv_bias"],
        "activation": ACTIVATIONS.get(stated["hidden_act"], stated["hidden_act"]),
        "distillation_head": "head_dist.weight" in source,
        **fields,
    }
    for field, key in (("heads", "num_attention_heads"), ("norm_eps", "layer_norm_eps"), ("activation", "hidden_act")):
        origin = "config.json" if key in tower else f"transformers' default for {model_type}"
        values[field] = facts.resolve(field, values[field], architecture if field in fields else origin)
    problem = source.config.get("problem_type")
    if problem == "regression":
        raise CheckpointError("config.json says problem_type regression: the outputs are numbers, not scores of labels")
    score, origin = SCORES.get(problem), "config.json"
    if text_tower := kind.compares is not None and has_texts and not classes:
        score, origin = kind.compares, f"how {architecture} compares images with text"
    config = ViTConfig(**values)
    # ...ForImageClassification does not use what is for other outputs.
    used = {"pre_logits": config.representation_size, "norm": config.final_norm != "none"}
    if kind is SIGLIP:
        used["attn_pool"] = config.pools_by_attention
    for layer, is_used in used.items():
        if not is_used:
            source.rename(dropping=rf"{layer}\..*")
    return Description(
        family="transformers",
        architecture=architecture,
        config=config,
        grid=grid_of(size, config.patch_size),
        preprocessing=preprocessing,
        labels=_labels(source.config.get("id2label"), classes) if classes else (),
        labels_from="config.json",
        score=resolve_score(facts, classes, stated=score, origin=origin),
        text_tower=text_tower,
    )


def tensors(state: State, description: Description) -> State:
    config = description.config
    join_blocks(state, config)
    for kind in ("weight", "bias"):
        if f"attn_pool.qkv.{kind}" in state:  # of torch.nn.MultiheadAttention
            q, kv = state.pop(f"attn_pool.qkv.{kind}").tensor_split([config.width])
            state |= {f"attn_pool.q.{kind}": q, f"attn_pool.kv.{kind}": kv}
    share_relative_table(state, config)
    return state


def _pool_of_other_head(source: Source, facts: Facts, architecture: str, *, comparing: bool) -> str | None:
    """What a classifier reads that a person has put beside another model, which is written nowhere: the place of
    ViTConfig, or the output of the pooler. None for a classifier of transformers.
    """
    named = "architectures" in source.config and not architecture.endswith(CLASSIFYING)
    if not (named or source.foreign_head):
        return None
    head = source.foreign_head or source.names_in_file["head.weight"]
    why = (
        f"config.json names {architecture}, which has no classifier, but {source.file.name} has one"
        if named
        else f"{head} is no classifier of {architecture}"
    )
    why += ". It is not known what that one reads: "
    if comparing or source.config["model_type"] in ("beit", "data2vec-vision"):  # where the last norm depends on it
        raise CheckpointError(f"{why}save the model as ...ForImageClassification")
    pools = ("cls", "mean", "mean_all", *([POOLER] if "pre_logits.weight" in source else []))
    (pool,) = facts.need({"pool": pools[-1] if POOLER in pools else "cls"}, why=f"{why}give it, as in this example")
    if pool not in pools:
        raise CheckpointError(f"--set pool={pool}: it is one of {', '.join(pools)}")
    return str(pool)


def _tower(source: Source) -> Json:
    """What config.json states about the network. An old `vision_config_dict` comes before `vision_config`."""
    towers = (source.config.get("vision_config_dict"), source.config.get("vision_config"))
    return next((tower for tower in towers if tower is not None), source.config)


def _labels(id2label: dict[str, Any] | None, classes: int) -> tuple[str, ...]:
    """Empty without names: LABEL_0, LABEL_1 and so on are what transformers writes then.

    Raises CheckpointError if they are not numbered one after the other.
    """
    if not id2label:
        return ()
    labels = {int(number): str(label) for number, label in id2label.items()}
    numbers = sorted(labels)
    if numbers not in (list(range(len(numbers))), NUMBERS_22K):
        raise CheckpointError(
            f"config.json's id2label numbers {len(labels)} labels, but not from 0 to {len(labels) - 1}"
        )
    names = tuple(labels[number] for number in numbers)
    return () if names == tuple(f"LABEL_{i}" for i in range(classes)) else names
