"""Checkpoints and numbers of timm, saved by its own `save_for_hf` and read by its own evaluation transform.

Not named timm.py, which would hide the library from a script in this folder.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from lab.parity.comparison import randomise

SMALL: dict[str, Any] = {"embed_dim": 24, "depth": 2, "num_heads": 3, "img_size": 32, "patch_size": 8, "num_classes": 5}
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {  # architecture, arguments, preprocessing
    "plain": ("vit_base_patch16_224", {"init_values": 1e-5}, {}),
    "clip": ("vit_base_patch16_clip_quickgelu_224", {"img_size": (32, 32)}, {"crop_mode": "squash"}),
    "registers": ("vit_little_patch16_reg4_gap_256", {}, {}),
    "slots-of-registers": ("test_vit2", {"class_token": True, "global_pool": "token", "mlp_ratio": 3.1}, {}),
    "distilled": ("deit_tiny_distilled_patch16_224", {}, {"interpolation": "bilinear"}),
    "map": ("vit_so400m_patch16_siglip_256", {}, {}),
    "remainder": ("vit_so400m_patch14_siglip_384", {"img_size": (37, 43)}, {"input_size": (3, 37, 43)}),
    "prefix-in-mean": ("eva_large_patch14_196", {"pool_include_prefix": True, "fc_norm": False}, {}),
    "inner-norms": ("beit3_base_patch16_224", {"mlp_ratio": 2}, {"crop_pct": 0.6}),
    "parallel": ("vit_base_patch16_xp_224", {"mlp_ratio": 2}, {}),
    "post-norm": ("vit_base_patch16_rpn_224", {"mlp_ratio": 2}, {}),
    "split-swiglu": ("aimv2_large_patch14_224", {}, {}),
    "packed-swiglu": ("vit_giant_patch14_dinov2", {"mlp_ratio": 2}, {}),
    "beit": ("beit_base_patch16_224", {}, {}),
    "relative-mlp": ("vit_relpos_base_patch16_clsgap_224", {"rel_pos_dim": 16}, {}),
    "shared-relative-mlp": ("vit_srelpos_small_patch16_224", {"rel_pos_dim": 16}, {}),
    "hybrid": ("vit_tiny_r_s16_p8_224", {"patch_size": 2}, {}),
    "eva02-tiny": ("eva02_tiny_patch14_224", {"ref_feat_shape": 3}, {}),
    "eva02-base": ("eva02_base_patch14_224", {"img_size": (32, 48), "ref_feat_shape": 3}, {"input_size": (3, 32, 48)}),
    "dinov3": ("vit_small_patch16_dinov3", {}, {"input_size": (3, 32, 32)}),
    "dinov3-plus": ("vit_small_plus_patch16_dinov3_qkvb", {"global_pool": "token"}, {"input_size": (3, 40, 32)}),
    "perception-encoder": ("vit_pe_core_tiny_patch16_384", {"ref_feat_shape": 3}, {}),
    "rope-axial": ("vit_small_patch16_rope_224", {}, {}),
    "rope-mixed": ("vit_small_patch16_rope_mixed_ape_224", {}, {}),
    "sapiens2": ("vit_base_patch16_sapiens2", {"num_kv_heads": [3, 1]}, {"input_size": (3, 40, 24)}),
}
WITH_MAPS = ("eva02-tiny", "dinov3", "perception-encoder", "rope-mixed")
DESCRIPTIONS = {f"n{i}": f"the {i}th thing" for i in range(4)}


def make(folder: Path) -> None:
    import timm
    from timm.models import save_for_hf

    for case, (architecture, arguments, recipe) in CASES.items():
        model = randomise(timm.create_model(architecture, **{**SMALL, **arguments}))
        path = started(folder, case)
        labels = {"label_names": [f"n{i}" for i in range(5)], "label_descriptions": DESCRIPTIONS}
        save_for_hf(model, path, labels, safe_serialization=case != "clip", data_config=recipe)
        config = json.loads((path / "config.json").read_text())["pretrained_cfg"]
        expect(path, model, config, maps=case in WITH_MAPS)

    # The legacy form: one dictionary, no model_args; weights from before its patches were a convolution.
    model = randomise(timm.create_model("test_vit", num_classes=3, img_size=32, depth=1))
    path = started(folder, "legacy")
    state = model.state_dict()
    state["patch_embed.proj.weight"] = state["patch_embed.proj.weight"].flatten(1)
    state["pre_logits.fc.weight"] = torch.randn(64, 64)
    torch.save({key: tensor.half() for key, tensor in state.items()}, path / "pytorch_model.bin")
    model.load_state_dict({key: tensor.half().float() for key, tensor in model.state_dict().items()})
    config = {**model.pretrained_cfg, "input_size": (3, 32, 32), "num_classes": 3, "labels": ["ant", "bee", "cow"]}
    (path / "config.json").write_text(json.dumps(config, indent=2))
    (path / "overrides.json").write_text('{"depth": "1"}\n')  # where no argument was saved
    expect(path, model, config)

    # What timm's training script saves, and nothing beside it.
    model = randomise(timm.create_model("vit_tiny_patch16_224", **SMALL))
    path = started(folder, "lone")
    state = {f"module.{key}": tensor for key, tensor in model.state_dict().items()}
    torch.save({"epoch": 3, "arch": "vit_tiny_patch16_224", "state_dict": state}, path / "checkpoint.pth.tar")
    arguments = {name: str(SMALL[name]) for name in ("embed_dim", "depth", "num_heads", "patch_size")}
    (path / "overrides.json").write_text(json.dumps({"architecture": "vit_tiny_patch16_224", **arguments}, indent=2))
    expect(path, model, {**model.pretrained_cfg, "input_size": (3, 32, 32)})


def started(folder: Path, case: str) -> Path:
    path = folder / f"timm-{case}"
    path.mkdir(parents=True, exist_ok=True)
    return path


@torch.inference_mode()
def expect(path: Path, model: nn.Module, config: dict[str, Any], *, maps: bool = False) -> None:
    from timm.data import create_transform, resolve_data_config

    picture = np.random.default_rng(0).integers(0, 256, (61, 83, 3), dtype=np.uint8)
    pixels = create_transform(**resolve_data_config(pretrained_cfg=config))(Image.fromarray(picture))
    logits = model(pixels[None])[0]
    numbers = {"picture": picture, "pixels": pixels.numpy(), "logits": logits.numpy()}
    np.savez_compressed(path / "expected.npz", **numbers, **(hooked(model, pixels) if maps else {}))


def hooked(model: Any, pixels: Tensor) -> dict[str, Any]:
    """Attention matrices (L, H, T, T) and the weights of an attention pool (H, T), by hooks in timm's own layers."""
    matrices: list[Tensor] = []
    projected: list[Tensor] = []
    for block in model.blocks:
        block.attn.fused_attn = False
        block.attn.attn_drop.register_forward_hook(lambda _, inputs, __: matrices.append(inputs[0][0]))
    pool = model.attn_pool
    if pool is not None:
        for layer in (pool.q, pool.kv):
            layer.register_forward_hook(lambda _, __, output: projected.append(output[0]))
    model(pixels[None])
    maps = {"attentions": torch.stack(matrices).numpy()}
    if pool is not None:
        query, key = projected[0], projected[1].chunk(2, dim=-1)[0]  # (1, D) and (T, D)
        query, key = (x.unflatten(-1, (pool.num_heads, -1)).transpose(0, 1) for x in (query, key))
        maps["pool"] = (query @ key.transpose(-2, -1) * pool.scale).softmax(-1).squeeze(1).numpy()
    return maps
