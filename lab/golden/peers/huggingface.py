"""Checkpoints and numbers of transformers: its own models and image processors, the latter with Pillow.

save_pretrained writes the names of version 4, state_dict() those of version 5.
"""

import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn

SIZES = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "patch_size": 4, "image_size": 20}
NAMED = {**SIZES, "id2label": {0: "cat", 1: "dog", 2: "newt", 3: "owl", 4: "yak"}}
PLAIN = {**NAMED, "intermediate_size": 40}
SQUARE = {"size": {"height": 20, "width": 20}}
ODD_MARGIN = {"crop_size": {"height": 20, "width": 20}}  # cut from 25: half a pixel is left over


def make(folder: Path) -> None:
    import transformers as hf

    square = hf.ViTImageProcessorPil(**SQUARE)
    squashed = hf.DeiTImageProcessorPil(size={"height": 25, "width": 27}, **ODD_MARGIN)
    shortest = hf.BitImageProcessorPil(size={"shortest_edge": 25}, **ODD_MARGIN)
    beit = hf.BeitImageProcessorPil(**SQUARE)
    relative = {"use_relative_position_bias": True}

    write(folder / "huggingface-vit", hf.ViTForImageClassification(hf.ViTConfig(**PLAIN)), square)
    oblong = {**PLAIN, "image_size": [20, 28], "qkv_bias": False, "hidden_act": "gelu_new", "layer_norm_eps": 1e-3}
    model = hf.ViTForImageClassification(hf.ViTConfig(**oblong, problem_type="multi_label_classification"))
    moments = {"image_mean": [0.1, 0.2, 0.3], "image_std": 0.4}
    processor = hf.ViTImageProcessorPil(size={"height": 20, "width": 28}, resample=1, **moments)
    write(folder / "huggingface-vit-v5", model, processor, version=5)
    write(folder / "huggingface-vit-msn", hf.ViTMSNForImageClassification(hf.ViTMSNConfig(**PLAIN)), square)
    write(folder / "huggingface-deit", hf.DeiTForImageClassification(hf.DeiTConfig(**PLAIN)), squashed, version=5)
    teacher = hf.DeiTForImageClassificationWithTeacher(hf.DeiTConfig(**PLAIN))
    write(folder / "huggingface-deit-teacher", teacher, squashed)
    write(folder / "huggingface-ijepa", hf.IJepaForImageClassification(hf.IJepaConfig(**PLAIN)), square)
    large = {**NAMED, "image_size": 36, "mlp_ratio": 2}  # of the position table: these interpolate by themselves
    write(folder / "huggingface-dinov2", hf.Dinov2ForImageClassification(hf.Dinov2Config(**large)), shortest)
    gated = {**large, "use_swiglu_ffn": True}
    dinov2 = hf.Dinov2ForImageClassification(hf.Dinov2Config(**gated))
    write(folder / "huggingface-dinov2-v5", dinov2, shortest, version=5)
    registers = hf.Dinov2WithRegistersConfig(**gated, num_register_tokens=3)
    write(folder / "huggingface-dinov2-registers", hf.Dinov2WithRegistersForImageClassification(registers), shortest)
    write(folder / "huggingface-beit", hf.BeitForImageClassification(hf.BeitConfig(**PLAIN, **relative)), beit)
    both = {**PLAIN, **relative, "image_size": 28, "use_shared_relative_position_bias": True}
    cls = {"use_mean_pooling": False, "layer_scale_init_value": 0.0}
    write(folder / "huggingface-beit-v5", hf.BeitForImageClassification(hf.BeitConfig(**both, **cls)), beit, version=5)
    dinov3 = {**PLAIN, "num_register_tokens": 2, "id2label": None}
    imagenet = hf.ViTImageProcessorPil(**SQUARE, image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225])
    write(folder / "huggingface-dinov3", hf.DINOv3ViTModel(hf.DINOv3ViTConfig(**dinov3)), imagenet)
    gated = {**dinov3, "use_gated_mlp": True, "hidden_act": "silu", "key_bias": True, "rope_theta": 30.0}
    write(folder / "huggingface-dinov3-v5", hf.DINOv3ViTModel(hf.DINOv3ViTConfig(**gated)), imagenet, version=5)
    data2vec = hf.Data2VecVisionConfig(**PLAIN, **relative, attn_implementation="eager")  # it cannot be changed later
    write(folder / "huggingface-data2vec", hf.Data2VecVisionForImageClassification(data2vec), beit)
    write_hybrid(folder / "huggingface-vit-hybrid", hf.BitImageProcessorPil(size=25, **ODD_MARGIN))


def write(case: Path, model: nn.Module, processor, *, version: int = 4) -> None:
    randomise(model)
    case.mkdir(parents=True, exist_ok=True)
    save(model, case, version=version)
    processor.save_pretrained(case)
    write_numbers(case, model, processor)


def save(model: nn.Module, folder: Path, *, version: int) -> None:
    if version == 4:
        model.save_pretrained(folder)
    else:
        model.config.architectures = [type(model).__name__]
        model.config.save_pretrained(folder)
        torch.save(model.state_dict(), folder / "pytorch_model.bin")


def randomise(model: nn.Module) -> None:
    """Weights with which attention is uneven and every bias, scale and position counts."""
    torch.manual_seed(0)
    for name, parameter in model.named_parameters():
        scale = "norm" in name and name.endswith("weight")
        nn.init.uniform_(parameter, 0.5, 1.5) if scale else nn.init.normal_(parameter, std=0.3)
    model.eval()


def seen_by(processor) -> tuple[np.ndarray, torch.Tensor]:
    """A picture of noise, and a batch of its pixels."""
    picture = np.random.default_rng(0).integers(0, 256, (37, 53, 3), dtype=np.uint8)
    return picture, processor(Image.fromarray(picture), return_tensors="pt")["pixel_values"]


def write_numbers(case: Path, model: nn.Module, processor) -> None:
    picture, pixels = seen_by(processor)
    model.set_attn_implementation("eager")  # the others give no attentions
    with torch.inference_mode():
        out = model(pixels, output_attentions=True)
    answer = {"logits": out.logits[0].numpy()} if "logits" in out else {"embedding": out.pooler_output[0].numpy()}
    answer["attentions"] = torch.stack(out.attentions, dim=1)[0].numpy()
    np.savez_compressed(case / "expected.npz", picture=picture, pixels=pixels[0].numpy(), **answer)


def write_hybrid(case: Path, processor) -> None:
    """ViT-Hybrid left transformers with version 5: here it is again, from transformers' BiT and transformers' ViT.

    The layout is that of models/deprecated/vit_hybrid of version 4. In half precision, for the size of the file.
    """
    from transformers import BitBackbone, BitConfig, ViTConfig, ViTForImageClassification

    class PatchEmbeddings(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            padding = {"global_padding": "same", "embedding_dynamic_padding": True}
            stem = BitConfig(depths=[1], layer_type="bottleneck", out_features=["stage1"], **padding)
            self.backbone = BitBackbone(stem)
            self.projection = nn.Conv2d(256, PLAIN["hidden_size"], kernel_size=1)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return self.projection(self.backbone(images).feature_maps[-1]).flatten(2).transpose(1, 2)

    model = ViTForImageClassification(ViTConfig(**PLAIN))
    model.vit.embeddings.patch_embeddings = PatchEmbeddings()
    randomise(model)
    model.half().float()
    case.mkdir(parents=True, exist_ok=True)
    tensors = {_version_4(key): tensor.half() for key, tensor in model.state_dict().items()}
    save_file(tensors, case / "model.safetensors")
    config = {
        **model.config.to_dict(),
        "architectures": ["ViTHybridForImageClassification"],
        "model_type": "vit-hybrid",
        "patch_size": 1,
        "backbone_config": model.vit.embeddings.patch_embeddings.backbone.config.to_dict(),
    }
    (case / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    described = {**processor.to_dict(), "image_processor_type": "ViTHybridImageProcessor"}
    (case / "preprocessor_config.json").write_text(json.dumps(described, indent=2) + "\n")
    write_numbers(case, model, processor)


def _version_4(key: str) -> str:
    if not key.startswith("vit.layers."):
        return key
    names = {
        "vit.layers.": "vit.encoder.layer.",
        "attention.q_proj": "attention.attention.query",
        "attention.k_proj": "attention.attention.key",
        "attention.v_proj": "attention.attention.value",
        "attention.o_proj": "attention.output.dense",
        "mlp.fc1": "intermediate.dense",
        "mlp.fc2": "output.dense",
    }
    for new, old in names.items():
        key = key.replace(new, old)
    return key
