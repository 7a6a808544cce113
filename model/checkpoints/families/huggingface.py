"""Hugging Face transformers: image classifiers, backbones and image towers, named as by version 4 or 5 (modeling_*.py).

Version 5 renamed the blocks (transformers #41693, conversion_mapping.py), and there are files from every stage of that
change, so the place of the blocks and each name in them change separately. CLIP, MetaCLIP 2 and SigLIP are in
models/clip, models/metaclip_2 and models/siglip; SigLIP 2 of a fixed resolution is stored as SigLIP.
"""

import re

from model.checkpoints.checkpoint import CheckpointError, Description, Origin
from model.checkpoints.facts import Facts, resolve_score
from model.checkpoints.families.huggingface_config import checked, tower_of
from model.checkpoints.families.huggingface_head import check_pool, head_of, labels_of, score_of
from model.checkpoints.families.huggingface_images import describe_images
from model.checkpoints.families.huggingface_kinds import ACTIVATIONS, KINDS, Json
from model.checkpoints.source import Source
from model.checkpoints.tensors import NOTHING, State, fill_biases, grid_of, join_blocks, pair, share_relative_table
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
TEXTS = "text_model.embeddings.token_embedding.weight"
# DINOv3's layers with a bias, and the switch of each.
BIASES = {
    "attn.q": "query_bias",
    "attn.k": "key_bias",
    "attn.v": "value_bias",
    "attn.proj": "proj_bias",
    "mlp.fc1_g": "mlp_bias",
    "mlp.fc1": "mlp_bias",
    "mlp.fc2": "mlp_bias",
}


def recognises(source: Source) -> bool:
    """Raises CheckpointError for a model type of transformers that is not supported."""
    if not any(re.fullmatch(PATCHES, name) for name in source.names):
        return False
    model_type = source.config.get("model_type", "")
    if model_type not in [*KINDS]:
        raise CheckpointError(
            f"config.json has the model_type {model_type or None}; supported are {', '.join(KINDS)}"
            if source.config
            else "there is no config.json beside these weights of transformers: download it from their source"
        )
    return True


def describe(source: Source, facts: Facts) -> Description:
    """All facts are in config.json, or follow from its model_type."""
    model_type = source.config["model_type"]
    kind = KINDS[model_type]
    tower, stated = tower_of(source.config, kind), checked(source.config, kind)
    size, (patch_size, across) = pair(stated["image_size"]), pair(stated["patch_size"])
    if patch_size != across:
        raise CheckpointError(f"patches of {patch_size} x {across} pixels are not square")
    has_texts, has_bias = TEXTS in source, "logit_bias" in source
    facts.network = Origin.stated(f"{model_type} of transformers, by config.json")
    source.rename(NAMES, dropping=f"{DROPPED}|{OF_TEXTS}" if kind.compares else DROPPED)
    architectures = source.config.get("architectures") or []
    if not isinstance(architectures, list) or not all(isinstance(name, str) for name in architectures):
        raise CheckpointError(f"config.json has the architectures {architectures}: expected a list of names")
    # Releases before 4.57 wrote the prefix of FSDP 2 into it (transformers #40750).
    architecture = str(architectures[0]).removeprefix("FSDP") if architectures else f"a {model_type} model"
    head = head_of(source, facts, kind, architecture, width=stated["hidden_size"])
    if not head.classifies and stated.get("vision_use_head") is False:
        raise CheckpointError(f"{architecture} has no attention pool (vision_use_head), and so no output to serve")
    if stated["num_channels"] != 3:
        raise CheckpointError(f"{architecture} takes {stated['num_channels']} channels, not red, green and blue")
    _compare_biases(source, stated)
    fields = kind.switches(stated | {"patch_size": patch_size})
    fields |= head.reads(kind, stated, fields)
    if head.classifies and head.pool is None and facts.serves_head:
        check_pool(facts, source.config, str(fields.get("pool")))
    if kind.compares:
        fields["patch_bias"] = "patch_embed.proj.bias" in source
        fields["head_bias"] = head.classifies or has_bias
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
        "mlp_dim": stated.get("intermediate_size"),
        "heads": stated["num_attention_heads"],
        "num_classes": head.classes,
        "position_resize": "bicubic",
        "norm_eps": stated["layer_norm_eps"],
        "qkv_bias": stated.get("qkv_bias", True),
        "activation": ACTIVATIONS.get(stated["hidden_act"], stated["hidden_act"]),
        "distillation_head": "head_dist.weight" in source,
        **fields,
    }
    for field, key in (("heads", "num_attention_heads"), ("norm_eps", "layer_norm_eps"), ("activation", "hidden_act")):
        origin = "config.json" if key in tower else f"transformers' default for {model_type}"
        values[field] = facts.resolve(field, values[field], Origin.stated(architecture if field in fields else origin))
    if text_tower := kind.compares is not None and has_texts and not head.classifies:
        compared = f"how {architecture} compares images with text"
        score = resolve_score(facts, 0, said=kind.compares, where=compared)
    else:
        score = score_of(source.config, facts, head.classes)
    config = ViTConfig(**values)
    grid = grid_of(size, config.patch_size)
    if kind.interpolates and grid[0] != grid[1] and (config.positions == "learned" or config.relative_bias):
        raise CheckpointError(
            f"config.json has the image_size {stated['image_size']}: transformers resizes the positions of "
            f"{model_type} as if they were square, so those of a rectangle are not supported"
        )
    # What is for other outputs is not used.
    used = {"pre_logits": config.representation_size, "norm": config.final_norm != "none"}
    if "vision_use_head" in stated:
        used["attn_pool"] = config.pools_by_attention
    for layer, is_used in used.items():
        if not is_used:
            source.rename(dropping=rf"{layer}\..*")
    labels, problem = labels_of(source.config.get("id2label"), head.classes)
    return Description(
        family="transformers",
        architecture=architecture,
        config=config,
        grid=grid,
        preprocessing=preprocessing,
        labels=labels,
        labels_problem=problem,
        labels_from="config.json",
        score=score,
        text_tower=text_tower,
    )


def tensors(state: State, description: Description) -> State:
    config = description.config
    pooler = "attn_pool.latent" if config.pool == "map" else "fc_norm.weight"
    if pooler not in state and (config.pool == "map" or config.final_norm == "after_pool"):
        pretrained = "" if config.pool == "map" else ": BEiT and Data2Vec are pre-trained without one"
        raise CheckpointError(
            f"the file has no pooler of {description.architecture}, and so no output to serve{pretrained}"
        )
    if config.rope:  # of DINOv3; `describe` has compared its switches of biases with the file
        fill_biases(state, config, BIASES)
    join_blocks(state, config)
    for kind in ("weight", "bias"):
        if f"attn_pool.qkv.{kind}" in state:  # of torch.nn.MultiheadAttention
            q, kv = state.pop(f"attn_pool.qkv.{kind}").tensor_split([config.width])
            state |= {f"attn_pool.q.{kind}": q, f"attn_pool.kv.{kind}": kv}
    share_relative_table(state, config)
    return state


def _compare_biases(source: Source, stated: Json) -> None:
    """Raises CheckpointError if the file has other biases than the switches say."""
    for layer, switch in BIASES.items():
        has = any(name.endswith(f".{layer}.bias") for name in source.names)
        if f"blocks.0.{layer}.weight" in source and stated.get(switch, has) != has:
            found = "has such biases" if has else "has no such biases"
            raise CheckpointError(f"config.json says {switch} {stated[switch]}, and {source.file.name} {found}")
