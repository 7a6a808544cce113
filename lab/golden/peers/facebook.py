"""Checkpoints of DeiT, MAE and DINO to DINOv3 as facebookresearch publishes them; their networks are timm's too.

The files' names, containers and heads are theirs: dino `eval_linear.py`, dinov2 and dinov3 `hub/classifiers.py`. So is
the interpolation of DINOv2's positions, `interpolate_pos_encoding`, and the transform in README.md of dinov3.
"""

import json
import re
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn

SIDE, PATCH, GRID = 16, 4, 4
NATIVE = 7  # patches a side of DINOv2's table
PLAIN = {"img_size": SIDE, "patch_size": PATCH, "embed_dim": 24, "depth": 4, "num_heads": 3, "mlp_ratio": 2}
ROTARY = {"img_size": SIDE, "patch_size": PATCH, "embed_dim": 24, "depth": 2, "num_heads": 3}
EVALUATED = {**PLAIN, "img_size": 224, "patch_size": 16}  # as DINOv2 is, whatever its table of positions
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CLASSES = 6


def make(folder: Path) -> None:
    import timm
    from timm.layers import SwiGLUPacked
    from timm.models.deit import VisionTransformerDistilled
    from timm.models.vision_transformer import VisionTransformer

    deit = random(VisionTransformer(**PLAIN, num_classes=CLASSES))
    distilled = random(VisionTransformerDistilled(**PLAIN, num_classes=CLASSES))
    mae = random(VisionTransformer(**PLAIN, num_classes=CLASSES, global_pool="avg", fc_norm=True))
    for name, model in (("deit", deit), ("deit-distilled", distilled), ("mae", mae)):
        chosen = {"architecture": {"deit": "DeiT", "mae": "MAE"}[name]} if name != "deit-distilled" else {}
        write(folder / name, {"checkpoint.pth": {"model": model.state_dict()}}, model, **chosen)

    deit3 = random(VisionTransformer(**PLAIN, num_classes=CLASSES, no_embed_class=True, init_values=1))
    state = renamed(deit3, (r"\.ls([12])\.gamma", r".gamma_\1"))
    write(folder / "deit-3", {"checkpoint.pth": {"model": state}}, deit3, share=1, architecture="DeiT-3")

    backbone = random(VisionTransformer(**PLAIN, num_classes=0))
    four = Classifier(backbone, 4 * 24, lambda cls, patches: torch.cat(cls, dim=1))
    write(folder / "dino-four-blocks", dino(backbone.state_dict(), four), four)
    teacher = {f"module.backbone.{key}": tensor for key, tensor in backbone.state_dict().items()}
    projection = {"module.head.mlp.0.weight": torch.zeros(5, 24), "module.head.last_layer.weight_g": torch.ones(7, 1)}
    mean = Classifier(backbone, 2 * 24, lambda cls, patches: torch.stack([cls[-1], patches.mean(1)], -1).flatten(1))
    write(folder / "dino-mean-patch", dino({"teacher": {**teacher, **projection}}, mean), mean)

    backbone = random(VisionTransformer(**EVALUATED, num_classes=0, init_values=1))
    table = native_table(backbone, grid=14, native=20, scale_factor=((14 + 0.1) / 20,) * 2)
    state = {**backbone.state_dict(), "pos_embed": table, "mask_token": torch.ones(1, 24)}
    linear = Classifier(backbone, 2 * 24, lambda cls, patches: torch.cat([cls[-1], patches.mean(1)], dim=1))
    write(folder / "dinov2", dinov2(state, linear), linear, side=224)

    backbone = random(VisionTransformer(**PLAIN, num_classes=0, init_values=1))
    table = native_table(backbone, scale_factor=((GRID + 0.1) / NATIVE,) * 2)
    state = {**backbone.state_dict(), "pos_embed": table, "mask_token": torch.ones(1, 24)}
    linear = Classifier(backbone, 2 * 24, lambda cls, patches: torch.cat([cls[-1], patches.mean(1)], dim=1))
    hub = {f"backbone.{key}": tensor for key, tensor in state.items()}
    hub |= {f"linear_head.{key}": tensor for key, tensor in linear.head.state_dict().items()}
    write(folder / "dinov2-hub", {"checkpoint.pth": hub}, linear, image_size="16,16")

    giant = {"mlp_layer": SwiGLUPacked, "act_layer": nn.SiLU, "reg_tokens": 2, "no_embed_class": True}
    backbone = random(VisionTransformer(**PLAIN, num_classes=0, init_values=1, **giant))
    table = native_table(backbone, size=(GRID, GRID), antialias=True)
    chunks = (r"^blocks\.([01])\.", r"blocks.0.\1."), (r"^blocks\.([23])\.", r"blocks.1.\1.")
    mlps = (r"\.mlp\.fc1\.", ".mlp.w12."), (r"\.mlp\.fc2\.", ".mlp.w3.")
    state = renamed(backbone, *chunks, *mlps, (r"^reg_token$", "register_tokens"))
    slot = torch.full((1, 1, 24), 0.5)  # timm has the class token's position in the token
    state |= {"cls_token": state["cls_token"] - slot, "pos_embed": torch.cat([slot, table], dim=1)}
    state["mask_token"] = torch.ones(1, 24)
    four = Classifier(backbone, 5 * 24, lambda cls, patches: torch.cat([*cls, patches.mean(1)], dim=1))
    write(folder / "dinov2-registers", dinov2(state, four), four, image_size="16,16")

    backbone = random(timm.create_model("vit_small_plus_patch16_dinov3_qkvb", **ROTARY, num_classes=0))
    linear = Rotary(backbone, 2 * 24, lambda cls, patches: torch.cat([cls[-1], patches.mean(1)], dim=1))
    channels = {"mean": "0.485,0.456,0.406", "std": "0.229,0.224,0.225"}
    write(folder / "dinov3", dinov2(dinov3(backbone), linear), linear, squash=True, image_size="16,16", **channels)


class Classifier(nn.Module):
    """A linear layer on normed outputs of the last four blocks."""

    def __init__(self, backbone: nn.Module, features: int, gather) -> None:
        super().__init__()
        self.backbone, self.gather = backbone, gather
        self.head = random(nn.Linear(features, CLASSES), seed=1)

    def forward(self, images: Tensor) -> Tensor:
        layers = self.backbone.get_intermediate_layers(images, n=4, return_prefix_tokens=True, norm=True)
        return self.head(self.gather([prefix[:, 0] for _, prefix in layers], layers[-1][0]))


class Rotary(Classifier):
    """A linear layer on the normed output of the last block."""

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.backbone.forward_features(images)
        return self.head(self.gather([tokens[:, 0]], tokens[:, self.backbone.num_prefix_tokens :]))


def random(model: nn.Module, *, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    for name, parameter in model.named_parameters():
        scale = name.endswith("gamma") or ("norm" in name and name.endswith("weight"))
        nn.init.normal_(parameter, mean=float(scale), std=0.25)
        parameter.data = (parameter.data * 64).round() / 64
    return model.eval()


def renamed(model: nn.Module, *pairs: tuple[str, str]) -> dict[str, Tensor]:
    state = model.state_dict()
    for pattern, replacement in pairs:
        state = {re.sub(pattern, replacement, key): tensor for key, tensor in state.items()}
    return state


def native_table(backbone: nn.Module, *, grid: int = GRID, native: int = NATIVE, **target) -> Tensor:
    """A larger table of positions; the backbone gets what DINOv2 makes of it for its own size."""
    own = backbone.pos_embed
    slots = own.shape[1] - grid * grid
    table = torch.randn(1, slots + native * native, own.shape[2]) / 4
    square = table[:, slots:].unflatten(1, (native, native)).permute(0, 3, 1, 2)
    resized = F.interpolate(square, mode="bicubic", **target).permute(0, 2, 3, 1).flatten(1, 2)
    own.data = torch.cat([table[:, :slots], resized], dim=1)
    return table


def dino(backbone: dict, model: Classifier) -> dict[str, dict]:
    head = {f"module.linear.{key}": tensor for key, tensor in model.head.state_dict().items()}
    return {"checkpoint.dino/full.pth": backbone, "checkpoint.dino/linearweights.pth": {"epoch": 9, "state_dict": head}}


def dinov2(backbone: dict, model: Classifier) -> dict[str, dict]:
    return {"checkpoint.hub/pretrain.pth": backbone, "checkpoint.hub/linear_head.pth": model.head.state_dict()}


def dinov3(backbone: nn.Module) -> dict[str, Tensor]:
    """The tensors of timm's network under dinov3's names, and those that count in training alone."""
    names = (r"^reg_token$", "storage_tokens"), (r"\.gamma_([12])$", r".ls\1.gamma")
    mlps = (r"\.fc1_g\.", ".w1."), (r"\.fc1_x\.", ".w2."), (r"\.fc2\.", ".w3.")
    state = renamed(backbone, *names, *mlps)
    for i in range(ROTARY["depth"]):
        q, v = (state.pop(f"blocks.{i}.attn.{kind}_bias") for kind in "qv")
        state[f"blocks.{i}.attn.qkv.bias"] = torch.cat([q, torch.ones(24), v])
        state[f"blocks.{i}.attn.qkv.bias_mask"] = torch.cat([torch.ones(24), torch.zeros(24), torch.ones(24)])
    state["rope_embed.periods"] = 100.0 ** torch.tensor([0.0, 0.5])
    return state | {"mask_token": torch.ones(1, 24), "local_cls_norm.weight": torch.ones(24)}


def write(
    case: Path,
    files: dict[str, dict],
    model: nn.Module,
    *,
    side: int = SIDE,
    share: float = 0.875,
    squash: bool = False,
    **overrides: str,
) -> None:
    from torchvision import transforms

    for name, content in files.items():
        (case / name).parent.mkdir(parents=True, exist_ok=True)
        torch.save(content, case / name)
    heads = {} if squash else {"heads": "3"}  # DINOv3's periods tell
    (case / "overrides.json").write_text(json.dumps({**heads, **overrides}) + "\n")
    picture = np.random.default_rng(1).integers(0, 256, (43, 61, 3), dtype=np.uint8)
    resize = transforms.Resize(int(side / share), transforms.InterpolationMode.BICUBIC)
    if squash:
        resize = transforms.Resize((side, side), transforms.InterpolationMode.BILINEAR)
    steps = [resize, transforms.CenterCrop(side), transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    pixels = transforms.Compose(steps)(Image.fromarray(picture))
    with torch.inference_mode():
        logits = model(pixels[None])[0]
    np.savez_compressed(case / "expected.npz", picture=picture, pixels=pixels.numpy(), logits=logits.numpy())
