"""Hugging Face transformers: ...ForImageClassification and backbones, named as by version 4 or 5 (modeling_*.py).

Version 5 renamed the blocks (transformers #41693, conversion_mapping.py), and there are files from every stage of that
change, so the place of the blocks and each name in them change separately.
"""

import re
from typing import Any

import torch
from torch import Tensor

from model.checkpoints.checkpoint import Description
from model.checkpoints.facts import Facts
from model.checkpoints.families.huggingface_config import check_head, describe_model, grid_of, kind_of
from model.checkpoints.families.huggingface_kinds import DEFAULTS, KINDS
from model.checkpoints.source import Source
from model.checkpoints.tensors import fit_positions, join_blocks
from model.positions import resize_relative_bias

PATCHES = r"(.*\.)?embeddings\.patch_embeddings\.(projection\.)?weight"  # DINOv3's without the second part
NAMES = (
    (r"^(.*\.)?embeddings\.", ""),
    (r"^distillation_token$", "dist_token"),
    (r"^register_tokens$", "reg_token"),
    (r"^position_embeddings$", "pos_embed"),
    (r"^patch_embeddings\.(projection\.)?(?=weight|bias)", "patch_embed.proj."),
    (r"^patch_embeddings\.backbone\.bit\.embedder\.convolution\.", "patch_embed.backbone.stem.conv."),
    (r"^patch_embeddings\.backbone\.bit\.embedder\.", "patch_embed.backbone.stem."),
    (r"^patch_embeddings\.backbone\.bit\.encoder\.(stages\.\d+)\.layers\.", r"patch_embed.backbone.\1.blocks."),
    (r"^(.*\.)?(encoder\.)?layers?\.(?=\d)", "blocks."),
    (r"\.layernorm_before\.", ".norm1."),
    (r"\.layernorm_after\.", ".norm2."),
    (r"\.attention\.(attention\.query|q_proj)\.", ".attn.q."),
    (r"\.attention\.(attention\.key|k_proj)\.", ".attn.k."),
    (r"\.attention\.(attention\.value|v_proj)\.", ".attn.v."),
    (r"\.attention\.(output\.dense|o_proj)\.", ".attn.proj."),
    (r"\.mlp\.gate_proj\.", ".mlp.fc1_g."),
    (r"\.(intermediate\.dense|mlp\.weights_in|mlp\.up_proj)\.", ".mlp.fc1."),
    (r"\.(output\.dense|mlp\.weights_out|mlp\.down_proj)\.", ".mlp.fc2."),
    (r"\.lambda_([12])$", r".ls\1.gamma"),
    (r"\.layer_scale([12])\.lambda1$", r".ls\1.gamma"),
    (r"^(blocks\.\d+\.).*relative_position_bias_table$", r"\1attn.relative_position_bias_table"),
    (r"^(?!blocks\.).*relative_position_bias_table$", "relative_position_bias_table"),  # of all layers
    (r"^(.*\.)?pooler\.layernorm\.", "fc_norm."),
    (r"^(.*\.)?pooler\.dense\.", "pre_logits."),
    (r"^(?!patch_embed\.)(.*\.)?(layernorm|norm)\.", "norm."),
    (r"^(cls_)?classifier\.", "head."),  # the first beside a distillation_classifier
    (r"^distillation_classifier\.", "head_dist."),
)
# A mask token is for masked image modelling, a decoder is of ViTMAEForPreTraining. The index is computed from the grid;
# early files contain it.
DROPPED = r"(.*\.)?embeddings\.mask_token|decoder\..*|.*\.relative_position_index"


def recognises(source: Source) -> bool:
    return any(re.fullmatch(PATCHES, name) for name in source.names)


def describe(source: Source, facts: Facts) -> Description:
    kind = kind_of(source.config, KINDS, supported="image classifiers")
    stated, source = _stated(source), source.renamed(NAMES, dropping=DROPPED)
    fields = kind.switches(stated)
    # The convolutions of a stem see what no patch covers.
    in_patches = "stem_layers" not in fields and "image_size" not in facts.overrides
    if "head.weight" not in source:
        fields |= _pooler(source, fields)
    elif "pre_logits.weight" in source:  # the pooler, which transformers' classifiers do not have
        check_head(source)
    return describe_model(
        source,
        facts,
        stated,
        {
            "patch_size": stated["patch_size"],
            "qkv_bias": stated["qkv_bias"],
            "distillation_head": "head_dist.weight" in source,
            **fields,
        },
        written=source.config,
        processor=kind.processor,
        interpolates=kind.interpolates,
        patch=stated["patch_size"] if in_patches else None,
    )


def tensors(source: Source, description: Description) -> dict[str, Tensor]:
    config, state = description.config, source.renamed(NAMES, dropping=DROPPED).tensors()
    if not config.representation_size:  # ...ForImageClassification builds its model without a dense pooler
        state = {name: tensor for name, tensor in state.items() if not name.startswith("pre_logits.")}
    join_blocks(state, config)
    grid = grid_of(_stated(source), config)
    fit_positions(state, config, grid)
    if config.relative_bias:
        shared = state.pop("relative_position_bias_table", None)
        for i in range(config.depth):
            name = f"blocks.{i}.attn.relative_position_bias_table"
            tables = [table for table in (state.get(name), shared) if table is not None]
            if tables:
                summed = torch.stack(tables).sum(dim=0)
                state[name] = resize_relative_bias(summed, grid, config.grid, config.position_resize)
    return state


def _pooler(source: Source, switches: dict[str, Any]) -> dict[str, Any]:
    """What `pooler_output` of a model without a classifier reads, as fields of ViTConfig. Dinov2Model takes the class
    token alone, ViTModel and DeiTModel put it through a layer with tanh.
    """
    fields: dict[str, Any] = {"pool": "cls"} if switches.get("pool") == "cls_mean" else {}
    dense = "pre_logits.weight"
    return fields | ({"representation_size": source.shape(dense)[0]} if dense in source else {})


def _stated(source: Source) -> dict[str, Any]:
    """config.json with the defaults of its configuration class."""
    stated = {**DEFAULTS, **KINDS[source.config["model_type"]].defaults, **source.config}
    if isinstance(stated["patch_size"], list):
        stated["patch_size"] = stated["patch_size"][0]
    return stated
