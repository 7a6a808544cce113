"""Checkpoints and numbers of OpenCLIP: a tower like OpenAI's, and one like CLIPA's that pools its patches."""

import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file

from lab.golden.peers.huggingface import randomise

VISION = {"image_size": 20, "layers": 2, "width": 24, "head_width": 8, "patch_size": 4, "mlp_ratio": 1.5}
TEXT = {"context_length": 8, "vocab_size": 32, "width": 16, "heads": 2, "layers": 1}
TEXT_IDS = ((3, 9, 4, 31, 0, 0, 0, 0), (1, 2, 3, 4, 5, 6, 7, 31), (8, 31, 0, 0, 0, 0, 0, 0))  # 31 ends a text
PATCHES = {"no_ln_pre": True, "pool_type": "avg", "final_ln_after_pool": True, "ls_init_value": 0.1}


def make(folder: Path) -> None:
    openai = {"embed_dim": 12, "quick_gelu": True, "vision_cfg": VISION, "text_cfg": TEXT}
    write(folder / "openclip-quickgelu", openai, {})
    clipa = {"embed_dim": 12, "vision_cfg": {**VISION, **PATCHES, "norm_kwargs": {"eps": 1e-3}}, "text_cfg": TEXT}
    write(folder / "openclip-average", clipa, {"interpolation": "bilinear", "resize_mode": "squash"})


def write(case: Path, model_cfg: dict, preprocess_cfg: dict) -> None:
    from open_clip.model import CLIP
    from open_clip.transform import PreprocessCfg, image_transform_v2

    model = CLIP(**model_cfg)
    randomise(model)
    case.mkdir(parents=True, exist_ok=True)
    save_file(model.state_dict(), case / "open_clip_model.safetensors")
    described = {"model_cfg": model_cfg, "preprocess_cfg": preprocess_cfg}
    (case / "open_clip_config.json").write_text(json.dumps(described, indent=2) + "\n")
    transform = image_transform_v2(PreprocessCfg(size=model.visual.image_size, **preprocess_cfg), is_train=False)
    picture = np.random.default_rng(0).integers(0, 256, (37, 53, 3), dtype=np.uint8)
    pixels = transform(Image.fromarray(picture))
    with torch.inference_mode():
        embedding = model.encode_image(pixels[None])[0]
        texts = model.encode_text(torch.tensor(TEXT_IDS), normalize=True)
    np.savez_compressed(
        case / "expected.npz",
        picture=picture,
        pixels=pixels.numpy(),
        embedding=embedding.numpy(),
        text_ids=np.array(TEXT_IDS),
        texts=texts.numpy(),
    )
