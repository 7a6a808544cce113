"""Text towers of checkpoints with their tokenisers, so that a bundle can read texts while it serves.

transformers' CLIP, MetaCLIP 2 and SigLIP, and OpenCLIP's own files. Texts are padded and cut as
transformers' pipelines/zero_shot_image_classification.py does it.
"""

import re
import string
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from model.checkpoints import zero_shot
from model.checkpoints.checkpoint import CheckpointError, Description, Texts
from model.checkpoints.families import openclip
from model.checkpoints.source import Source
from model.text import TextConfig, TextTower

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TOKENISER = "tokenizer.json"
PROBES = (  # texts on which the tower of a bundle is compared with the library's own
    "a photo of a cat, and 2 dogs",
    "This is a photo of THE red-and-white hat.",
    "naïve Straße, 猫\tand 12,345",
    "it's",
    "a very long text " * 5,
)
OF_BLOCKS = {  # by the names here
    "norm1": ("layer_norm1", "ln_1"),
    "proj": ("self_attn.out_proj", "attn.out_proj"),
    "norm2": ("layer_norm2", "ln_2"),
    "fc1": ("mlp.fc1", "mlp.c_fc"),
    "fc2": ("mlp.fc2", "mlp.c_proj"),
}
TRANSFORMERS, OPENCLIP = 0, 1  # place of a library's names
OPENCLIP_TEXT: dict[str, Any] = {  # of CLIPTextCfg, with its defaults
    "context_length": 77,
    "vocab_size": 49408,
    "width": 512,
    "heads": 8,
    "layers": 12,
    "mlp_ratio": 4.0,
    "pool_type": "argmax",
}
NOT_SUPPORTED: dict[str, Any] = {
    "hf_model_name": None,
    "no_causal_mask": False,
    "embed_cls": False,
    "ls_init_value": None,
    "proj_type": "linear",
    "proj_bias": False,
    "act_kwargs": None,
    "norm_kwargs": None,
}
WITHOUT_EFFECT = ("hf_tokenizer_name", "tokenizer_kwargs", "output_tokens", "pad_id", "eos_id", "final_ln_after_pool")


def load_texts(file: Path, folder: Path, description: Description) -> Texts:
    """The text tower beside an image tower. Raises CheckpointError if there is none, or it is of no known kind."""
    if description.family == openclip.FAMILY:
        texts = _of_openclip(Source(file))  # with the tensors that its loader drops
    elif description.text_tower:
        texts = _of_transformers(folder)
    else:
        raise CheckpointError(
            "--text needs a CLIP, MetaCLIP 2 or SigLIP of transformers with its text tower, or OpenCLIP's own files"
        )
    if texts.tower.config.features != description.config.embedding:
        raise CheckpointError("--text: vectors of texts are not in the space of the embeddings")
    return texts


def _of_transformers(folder: Path) -> Texts:
    whole, tokeniser = zero_shot.text_tower(folder)
    stated = whole.config.text_config
    siglip = "siglip" in whole.config.model_type
    fast = _fast(tokeniser)
    end = int(tokeniser.eos_token_id if siglip else stated.eos_token_id)
    config = TextConfig(
        vocabulary=stated.vocab_size,
        length=zero_shot.SIGLIP_TOKENS if siglip else stated.max_position_embeddings,
        width=stated.hidden_size,
        depth=stated.num_hidden_layers,
        heads=stated.num_attention_heads,
        mlp_dim=stated.intermediate_size,
        features=whole.text_model.head.out_features if siglip else whole.config.projection_dim,
        activation={"gelu_pytorch_tanh": "gelu_tanh"}.get(stated.hidden_act, stated.hidden_act),
        norm_eps=stated.layer_norm_eps,
        causal=not siglip,
        projection_bias=siglip,
        pool="last" if siglip else "largest" if end == 2 and whole.config.model_type == "clip" else "end",
        end=end,
        hides_padding=siglip and "attention_mask" in tokeniser.model_input_names,
    )
    state = whole.state_dict()
    of_text = {name.removeprefix("text_model."): tensor for name, tensor in state.items() if name.startswith("text_")}
    head = "head" if siglip else "text_projection"
    tensors = {
        "embed.weight": of_text["embeddings.token_embedding.weight"],
        "positions": of_text["embeddings.position_embedding.weight"][: config.length],
        **_pair(of_text, "final_layer_norm", "norm"),
        **_pair(of_text, head, "head"),
        **_blocks(of_text, "encoder.layers", config.depth, TRANSFORMERS),
    }
    tower = _filled(config, tensors)
    pad = tokeniser.pad_token_id
    padding = {"length": config.length} if siglip else {}
    fast.enable_padding(pad_id=0 if pad is None else pad, pad_token=tokeniser.pad_token or "", **padding)
    fast.no_truncation()
    if siglip:
        fast.enable_truncation(config.length)
    probes = _readable(fast, config.length)
    with torch.inference_mode():
        known = zero_shot.features(whole, tokeniser, probes)
    scale, bias = float(state["logit_scale"].exp()), float(state.get("logit_bias", torch.zeros(1)))
    return Texts(tower=tower, tokeniser=fast, scale=scale, bias=bias, known=known, probes=probes)


def _of_openclip(source: Source) -> Texts:
    """Cuts nothing: open_clip cuts texts that are longer, without a word."""
    from tokenizers import Tokenizer

    model_cfg = source.json(openclip.CONFIG).get("model_cfg") or {}
    given = {name: value for name, value in (model_cfg.get("text_cfg") or {}).items() if value is not None}
    for name, value in given.items():
        if name not in (*OPENCLIP_TEXT, *WITHOUT_EFFECT) and value != NOT_SUPPORTED.get(name, ...):
            raise CheckpointError(f"{openclip.CONFIG} has a text tower with {name} {value}, which is not supported")
    stated = OPENCLIP_TEXT | given
    if stated["pool_type"] != "argmax":
        raise CheckpointError(f"{openclip.CONFIG} has a text tower with pool_type {stated['pool_type']}")
    file = source.folder / TOKENISER
    if not file.is_file():
        raise CheckpointError(f"there is no tokeniser ({TOKENISER}) beside these weights: download it too")
    fast = Tokenizer.from_file(str(file))
    of_text = [name for name in source.names if not name.startswith("visual.")]
    state = {name.removeprefix("text."): source.read(name).float() for name in of_text}
    width, depth = stated["width"], stated["layers"]
    config = TextConfig(
        vocabulary=stated["vocab_size"],
        length=stated["context_length"],
        width=width,
        depth=depth,
        heads=stated["heads"],
        mlp_dim=int(width * stated["mlp_ratio"]),
        features=model_cfg["embed_dim"],
        activation="quick_gelu" if model_cfg.get("quick_gelu") else "gelu",
        norm_eps=1e-5,
        causal=True,
        projection_bias=False,
        pool="largest",
    )
    tower = _filled(config, {
        "embed.weight": state["token_embedding.weight"],
        "positions": state["positional_embedding"],
        **_pair(state, "ln_final", "norm"),
        "head.weight": state["text_projection"].T,
        **_blocks(state, "transformer.resblocks", depth, OPENCLIP),
    })  # fmt: skip
    fast.enable_padding(pad_id=0, pad_token="")
    fast.no_truncation()
    probes = _readable(fast, config.length)
    with torch.inference_mode():
        known = tower(torch.tensor([encoding.ids for encoding in fast.encode_batch(list(probes))]))
    bias = float(state.get("logit_bias", torch.zeros(1)))
    return Texts(
        tower=tower, tokeniser=fast, scale=float(state["logit_scale"].exp()), bias=bias, known=known, probes=probes
    )


def _pair(state: Mapping[str, Tensor], theirs: str, ours: str) -> dict[str, Tensor]:
    """A weight, and the bias beside it if it has one."""
    ends = [end for end in ("weight", "bias") if f"{theirs}.{end}" in state]
    return {f"{ours}.{end}": state[f"{theirs}.{end}"] for end in ends}


def _blocks(state: Mapping[str, Tensor], before: str, depth: int, library: int) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for number in range(depth):
        theirs, ours = f"{before}.{number}", f"blocks.{number}"
        for name, names in OF_BLOCKS.items():
            tensors |= _pair(state, f"{theirs}.{names[library]}", f"{ours}.{name}")
        for end in ("weight", "bias"):
            apart = [f"{theirs}.self_attn.{part}_proj.{end}" for part in "qkv"] if library == TRANSFORMERS else []
            joined = [state[name] for name in apart] or [state[f"{theirs}.attn.in_proj_{end}"]]
            tensors[f"{ours}.qkv.{end}"] = torch.cat(joined)
    return tensors


def _filled(config: TextConfig, tensors: Mapping[str, Tensor]) -> TextTower:
    """Raises CheckpointError unless every tensor has its place."""
    tower = TextTower(config)
    try:
        tower.load_state_dict(dict(tensors))
    except RuntimeError as error:
        raise CheckpointError(f"the text tower is not as its library writes it ({error})") from None
    return tower.eval()


def _readable(tokeniser: "Tokenizer", length: int) -> tuple[str, ...]:
    """The probes that a tower of so many tokens reads whole."""
    return tuple(text for text in PROBES if len(tokeniser.encode(text).ids) <= length)


def _fast(tokeniser: Any) -> "Tokenizer":
    """The tokeniser of transformers as one of its library `tokenizers`. SigLIP's of 2023 is in Python there."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers.convert_slow_tokenizer import SentencePieceExtractor

    if tokeniser.is_fast:
        return Tokenizer.from_str(tokeniser.backend_tokenizer.to_str())
    pieces: Any = SentencePieceExtractor(tokeniser.vocab_file).extract(None)
    if "merges" in pieces:
        model: Any = models.BPE(pieces["vocab"], pieces["merges"], unk_token=tokeniser.unk_token, fuse_unk=True)
    else:
        model = models.Unigram(pieces["vocab"], pieces["unk_id"])
    fast = Tokenizer(model)
    fast.add_special_tokens(pieces["additional_special_tokens"])
    charsmap = pieces["_spm_precompiled_charsmap"]
    # tokenization_siglip.py canonicalize_text
    fast.normalizer = normalizers.Sequence([
        *([normalizers.Lowercase()] if tokeniser.do_lower_case else ()),
        normalizers.Replace(Regex(f"[{re.escape(string.punctuation)}]"), ""),
        normalizers.Replace(Regex(r"\s+"), " "),
        normalizers.Strip(),
        *([normalizers.Precompiled(charsmap)] if charsmap else ()),
    ])  # fmt: skip
    fast.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    end = tokeniser.eos_token
    fast.post_processor = processors.TemplateProcessing(
        single=f"$A {end}", special_tokens=[(end, tokeniser.eos_token_id)]
    )
    return fast
