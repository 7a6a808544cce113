"""Checkpoints and numbers of vit-pytorch: of each release that changed the layout, installed for the occasion."""

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from PIL import Image
from torch import nn

SIZES = {"image_size": 16, "patch_size": 4, "num_classes": 6, "dim": 24, "depth": 2, "mlp_dim": 32}
MEAN, STD = (0.4, 0.5, 0.6), (0.3, 0.2, 0.25)  # vit-pytorch has none


CASES = {
    "0.40.2": ("cls", "mean", "simple"),
    "1.2.4": ("cls", "mean", "simple"),  # norms around the patch projection
    "1.9.2": ("mean", "one-head"),  # no PreNorm modules, the last norm before the pool
    "1.26.11": ("cls", "mean", "simple"),  # no batch axis, no class token to be averaged
}


def make(folder: Path) -> None:
    narrow = {"heads": 3, "dim_head": 12}
    for version, cases in CASES.items():
        with tempfile.TemporaryDirectory() as packages:
            install = ["pip", "install", "--quiet", "--no-deps", "--target", packages, f"vit-pytorch=={version}"]
            subprocess.run([sys.executable, "-m", *install], check=True)
            vit = module(Path(packages, "vit_pytorch", "vit.py"))
            simple = module(Path(packages, "vit_pytorch", "simple_vit.py"))
        averaged = vit.ViT(**SIZES, **narrow, pool="mean")
        pool = {"pool": "mean"} if averaged.cls_token.shape[-2] else {}  # without a row, the file says it
        normed = averaged.to_patch_embedding[1].weight.ndim == 1
        alike = normed and not hasattr(averaged.transformer, "norm")  # with the tensors of ats_vit.py
        meant = {"architecture": "vit"} if alike else {}
        models = {
            "cls": (vit.ViT(**SIZES, **narrow), {"pool": "cls", **meant}),
            "mean": (averaged, pool | meant),
            "one-head": (vit.ViT(**SIZES, heads=1, dim_head=SIZES["dim"]), {"heads": "1", "pool": "cls"}),
            "simple": (simple.SimpleViT(**SIZES, **narrow), {"image_size": "16,16"}),
        }
        for name in cases:
            model, overrides = models[name]
            write(folder / f"vit-pytorch-{version}-{name}", model, **overrides)


def module(file: Path) -> ModuleType:
    """A module without its package, which imports much more."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def write(case: Path, model: nn.Module, **overrides: str) -> None:
    torch.manual_seed(0)
    norms = {id(m.weight) for m in model.modules() if isinstance(m, nn.LayerNorm)}
    for parameter in model.parameters():
        nn.init.normal_(parameter, mean=float(id(parameter) in norms), std=0.25)
    model.eval()

    case.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), case / "checkpoint.pt")
    stated = {"heads": "3", "mean": ",".join(map(str, MEAN)), "std": ",".join(map(str, STD)), **overrides}
    (case / "overrides.json").write_text(json.dumps(stated) + "\n")
    picture = np.random.default_rng(1).integers(0, 256, (61, 43, 3), dtype=np.uint8)
    image = np.asarray(Image.fromarray(picture).resize((16, 16), Image.Resampling.BILINEAR), np.float32)
    pixels = ((image / 255 - np.array(MEAN, np.float32)) / np.array(STD, np.float32)).transpose(2, 0, 1)
    with torch.inference_mode():
        logits = model(torch.from_numpy(pixels)[None])[0]
    np.savez_compressed(case / "expected.npz", picture=picture, pixels=pixels, logits=logits.numpy())
