"""DINOv3's own files: tensors whose names and shapes facebookresearch and timm do not share, and its preprocessing.

github.com/facebookresearch/dinov3: models/vision_transformer.py, layers/, hub/backbones.py, README.md.
"""

import torch

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.source import Source
from model.checkpoints.tensors import State
from model.config import RopeConfig, ViTConfig
from model.preprocessing import Channels

SIDE = 256  # pixels, of README.md's make_transform
ROPE = RopeConfig(kind="centered", temperature=100.0, pairs="halves")  # hub/backbones.py, pos_embed_rope_base
NORM_EPS = 1e-5  # layernormbf16
NAMES = (
    (r"^storage_tokens$", "reg_token"),
    (r"\.mlp\.w1\.", ".mlp.fc1_g."),
    (r"\.mlp\.w2\.", ".mlp.fc1."),
    (r"\.mlp\.w3\.", ".mlp.fc2."),
)
# For masked patches, for local crops, and for what EUPE is distilled from: none is used after training.
TRAINING_ONLY = r"mask_token|local_cls_norm\..*|projectors\..*"
PERIODS = "rope_embed.periods"
ROUNDED = 0.005  # of a period: training computes them in bfloat16, timm and transformers anew in float32

LVD: tuple[Channels, Channels] = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # mean and std for images of the web
SAT: tuple[Channels, Channels] = (0.430, 0.411, 0.296), (0.213, 0.156, 0.143)  # for images of satellites
# What hub/backbones.py publishes: by width, and whether there is a norm for local crops.
PUBLISHED = {
    (192, False): LVD,  # EUPE
    (384, False): LVD,
    (768, False): LVD,
    (1024, False): LVD,
    (1024, True): SAT,
    (1280, False): LVD,
}


def is_original(source: Source) -> bool:
    """Whether the tensors have the names of facebookresearch/dinov3, under which EUPE is published too."""
    own = PERIODS in source or "storage_tokens" in source
    return own and "blocks.0.attn.qkv.weight" in source


def published_channels(source: Source, width: int) -> tuple[Channels, Channels] | None:
    """Mean and std of the only published weights that are like this file; None if there are none, or two."""
    return PUBLISHED.get((width, "local_cls_norm.weight" in source))


def convert(state: State, config: ViTConfig) -> None:
    """Biases and periods as this network has them, in place.

    Raises CheckpointError for periods that are not those of published weights, and for biases that a network without
    biases would leave out.
    """
    for layer in (f"blocks.{i}.attn.qkv" for i in range(config.depth)):
        mask, bias = state.pop(f"{layer}.bias_mask", None), state.get(f"{layer}.bias")
        if mask is None or bias is None:
            continue
        state[f"{layer}.bias"] = bias * mask  # 0 for keys
        if not config.qkv_bias and state.pop(f"{layer}.bias").any():
            raise CheckpointError(
                f"{layer}.bias is not zero, and the architecture has no such bias: that with _qkvb at the end has"
            )
    if (periods := state.pop(PERIODS, None)) is not None:
        assert config.rope is not None
        count = len(periods)
        expected = config.rope.temperature ** (torch.arange(count) / count)
        if not torch.allclose(periods, expected, rtol=ROUNDED, atol=0):
            raise CheckpointError(f"{PERIODS} is not that of a rope of base {config.rope.temperature:g}")
