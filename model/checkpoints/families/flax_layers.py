"""Layers of Google's flax trees: their names in our network, and their arrays in PyTorch's layout.

flax numbers modules: before linen with one count, since then each kind by itself. Google counts the stages and units of
a hybrid's ResNet from 1.
"""

import re

from torch import Tensor

from model.checkpoints.tensors import State


def _unit(match: re.Match[str]) -> str:
    return f"patch_embed.backbone.stages.{int(match[1]) - 1}.blocks.{int(match[2]) - 1}."


SCANNED = "blocks.*"  # tensors of all blocks are stacked along a first axis: flax `nn.scan`
NAMES = (
    (r"^cls$", "cls_token"),
    (r"^embedding/", "patch_embed.proj."),
    # Of vit_jax and the paper's big_vision; of big_vision; of big_vision before 2022.
    (r"^(Transformer/posembed_input/|Transformer/|)pos_embedding$", "pos_embed"),
    (r"^conv_root/", "patch_embed.backbone.stem.conv."),
    (r"^gn_root/", "patch_embed.backbone.stem.norm."),
    (r"^block(\d+)/unit(\d+)/", _unit),
    (r"\.conv_proj/", ".downsample.conv."),
    (r"\.gn_proj/", ".downsample.norm."),
    (r"\.conv([123])/", r".conv\1."),
    (r"\.gn([123])/", r".norm\1."),
    (r"^Transformer/encoder_norm/", "norm."),
    (r"^Transformer/encoderblock_(?=\d)", "blocks."),
    (r"^Transformer/encoderblock/", f"{SCANNED}/"),
    (r"^(MAPHead_0/)?probe$", "attn_pool.latent"),
    (r"^(MAPHead_0/)?MultiHeadDotProductAttention_0/", "attn_pool."),  # in the oldest files its parts are in the root
    (r"^(MAPHead_0/)?LayerNorm_0/", "attn_pool.norm."),
    (r"^(MAPHead_0/)?MlpBlock_0/", "attn_pool.mlp."),
    (r"/MultiHeadDotProductAttention_[01]/", "/attn."),
    (r"/LayerNorm_0/", "/norm1."),
    (r"/LayerNorm_[12]/", "/norm2."),
    (r"/MlpBlock_[03]/", "/mlp."),
    (r"Dense_0/", "fc1."),
    (r"Dense_1/", "fc2."),
    (r"\.query/", ".q."),
    (r"\.key/", ".k."),
    (r"\.value/", ".v."),
    (r"\.out/", ".proj."),
    (r"/", "."),
)


def as_torch(state: State) -> State:
    """Every layer under its name and in its layout in PyTorch, and every block by itself."""
    converted = {}
    for name, array in state.items():
        for i, part in enumerate(array if name.startswith(SCANNED) else [array]):
            ours = name.replace(SCANNED, f"blocks.{i}")
            converted[re.sub(r"\.(kernel|scale)$", ".weight", ours)] = _array(name, part)
    return converted


def _array(name: str, array: Tensor) -> Tensor:
    """In flax the first dimensions of a kernel are inputs, and either side can be split into heads."""
    layer, _, leaf = name.rpartition(".")
    if leaf in ("scale", "bias"):  # a group norm's are (1, 1, 1, C), those of queries (H, D / H)
        return array.flatten()
    if leaf != "kernel":
        return array
    if array.ndim == 4:  # (height, width, in, out)
        return array.permute(3, 2, 0, 1)
    return (array.flatten(0, 1) if layer.endswith(".proj") else array.flatten(1)).T
