"""Checkpoints and numbers of transformers' CLIP, MetaCLIP 2 and SigLIP, with text towers and tokenisers.

The tokenisers know the letters of the labels below. Scores come from transformers' zero-shot-image-classification.
"""

import string
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

from lab.golden.peers.huggingface import ODD_MARGIN, PLAIN, SIZES, SQUARE, randomise, seen_by, write

LABELS = ("cat", "dog on a mat", "newt")
PROMPTS = ("a photo of a {}.", "a drawing of the {}, in ink", "{}")
TOWER = {**SIZES, "intermediate_size": 40}
TEXT = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}
SHORTEST = {"size": {"shortest_edge": 25}, **ODD_MARGIN}


def make(folder: Path) -> None:
    import transformers as hf

    clip, siglip = hf.CLIPImageProcessorPil(**SHORTEST), hf.SiglipImageProcessorPil(**SQUARE)
    towers = {"vision_config": TOWER, "text_config": {**TEXT, "vocab_size": 99}}
    named = {**towers, "id2label": PLAIN["id2label"]}
    write(folder / "huggingface-clip-classifier", hf.CLIPForImageClassification(hf.CLIPConfig(**named)), clip)
    metaclip = hf.MetaClip2ForImageClassification(hf.MetaClip2Config(**named))
    write(folder / "huggingface-metaclip-2", metaclip, clip, version=5)
    write(folder / "huggingface-siglip-classifier", hf.SiglipForImageClassification(hf.SiglipConfig(**named)), siglip)

    letters = ["<|startoftext|>", "<|endoftext|>", *_letters(), "ca", "cat</w>"]
    vocabulary = {token: i for i, token in enumerate(letters)}
    tokeniser = hf.CLIPTokenizer(vocab=vocabulary, merges=[("c", "a"), ("ca", "t</w>")])
    ends = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    text = {**TEXT, **ends, "vocab_size": len(letters), "max_position_embeddings": 32}
    model = hf.CLIPModel(hf.CLIPConfig(vision_config=TOWER, text_config=text, projection_dim=12))
    write_beside_texts(folder / "huggingface-clip", model, clip, tokeniser)

    case = folder / "huggingface-siglip"
    case.mkdir(parents=True, exist_ok=True)
    tokeniser = hf.SiglipTokenizer(vocab_file=str(sentence_pieces(case / "spiece.model")))
    text = {**TEXT, "hidden_size": 24, "vocab_size": tokeniser.vocab_size, "max_position_embeddings": 64}
    model = hf.SiglipModel(hf.SiglipConfig(vision_config=TOWER, text_config=text))
    write_beside_texts(case, model, siglip, tokeniser)


def _letters() -> list[str]:
    """Each as the last of a word and within one."""
    signs = string.ascii_lowercase + ".,"
    return [*signs, *(f"{sign}</w>" for sign in signs)]


def sentence_pieces(file: Path) -> Path:
    """A sentencepiece model of the letters alone, without the table of a normaliser, which is large."""
    from sentencepiece import SentencePieceTrainer

    model = BytesIO()  # a path would stand in the model
    texts = iter([string.ascii_lowercase, *LABELS, *PROMPTS])
    kind = {"model_type": "bpe", "vocab_size": 48, "hard_vocab_limit": False, "normalization_rule_name": "identity"}
    ids = {"bos_id": -1, "pad_id": -1, "eos_id": 1, "unk_id": 2}
    SentencePieceTrainer.train(sentence_iterator=texts, model_writer=model, minloglevel=2, **kind, **ids)
    file.write_bytes(model.getvalue())
    return file


def write_beside_texts(case: Path, model: nn.Module, processor, tokeniser) -> None:
    """A whole model with its tokeniser, labels.txt, and what transformers makes of them."""
    from transformers.pipelines import ZeroShotImageClassificationPipeline

    randomise(model)
    model.logit_scale.data.fill_(2.0)
    case.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(case)
    processor.save_pretrained(case)
    tokeniser.save_pretrained(case)
    (case / "labels.txt").write_text("\n".join(LABELS) + "\n")

    picture, pixels = seen_by(processor)
    pipeline = ZeroShotImageClassificationPipeline(model=model, image_processor=processor, tokenizer=tokeniser)
    ranked = pipeline(Image.fromarray(picture), candidate_labels=list(LABELS))
    scores = {answer["label"]: answer["score"] for answer in ranked}

    with torch.inference_mode():
        each = [_features(model, tokeniser, prompt) for prompt in PROMPTS]
        image = model.get_image_features(pixels).pooler_output
        averaged = torch.stack(each).mean(0)
        averaged = averaged / averaged.norm(dim=-1, keepdim=True)
        cosine = image / image.norm(dim=-1, keepdim=True) @ averaged.T
        prompted = model.logit_scale.exp() * cosine + getattr(model, "logit_bias", 0)
        texts = _tokens(model, tokeniser, [f"This is a photo of {label}." for label in LABELS])
        beside = model(pixel_values=pixels, **texts).logits_per_image
        model.vision_model.set_attn_implementation("eager")
        attentions = model.vision_model(pixels, output_attentions=True).attentions
    np.savez_compressed(
        case / "expected.npz",
        picture=picture,
        pixels=pixels[0].numpy(),
        embedding=image[0].numpy(),
        attentions=torch.stack(attentions, dim=1)[0].numpy(),
        beside_texts=beside[0].numpy(),
        beside_prompts=prompted[0].numpy(),
        scores=np.array([scores[label] for label in LABELS]),
    )


def _features(model: nn.Module, tokeniser, prompt: str) -> torch.Tensor:
    texts = [prompt.format(label) for label in LABELS]
    features = model.get_text_features(**_tokens(model, tokeniser, texts)).pooler_output
    return features / features.norm(dim=-1, keepdim=True)


def _tokens(model: nn.Module, tokeniser, texts: list[str]):
    if "siglip" in model.config.model_type:
        return tokeniser(texts, padding="max_length", max_length=64, truncation=True, return_tensors="pt")
    return tokeniser(texts, padding=True, return_tensors="pt")
