"""What timm's architecture names stand for, from timm_architectures.json, and the network that has the same numbers.

tests/golden/make_timm_architectures.py writes the JSON from timm's entry points: the arguments that each of them gives
to its class, where they differ from the class's own defaults, and the published tags. The classes are timm's
`VisionTransformer` (models/vision_transformer.py), `VisionTransformerDistilled` (deit.py), `VisionTransformerRelPos`
(vision_transformer_relpos.py) and `Beit` (beit.py); an argument that is a layer stands by its name.
"""

import difflib
import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from model.checkpoints.checkpoint import CheckpointError
from model.config import ViTConfig

TABLE = Path(__file__).with_name("timm_architectures.json")

# timm's words for what this network can do, argument by argument.
WORDS: dict[str, dict[Any, Any]] = {
    "in_chans": {3: 3},
    "global_pool": {"token": "cls", "avg": "mean", "map": "map"},
    "pos_embed": {"learn": "learned", "": "none", "none": "none"},
    "rel_pos_type": {"mlp": "table", "bias": "table"},
    "norm_layer": {"layernorm": "layer", "rmsnorm": "rms"},
    "act_layer": {
        "gelu": "gelu",
        "gelu_tanh": "gelu_tanh",
        "quick_gelu": "quick_gelu",
        "silu": "silu",
        "swish": "silu",
    },
    "block_fn": {
        "Block": "pre_norm",
        "RelPosBlock": "pre_norm",
        "ResPostBlock": "res_post",
        "ResPostRelPosBlock": "res_post",
        "ParallelScalingBlock": "parallel",
    },
    "attn_layer": {"Attention": "plain", "attn": "plain", "": "plain"},
    "mlp_layer": {"Mlp": "plain", "SwiGLU": "gated", "SwiGLUPacked": "packed"},  # packed: gate and value are one layer
    "scale_mlp": {False: False},
    "use_naflex": {False: False, None: False},
}
# And what some of those mean that it cannot.
REFUSED: dict[str, str] = {
    "ParallelThingsBlock": "two attentions side by side in each block",
    "DiffParallelScalingBlock": "differential attention",
    "diff": "differential attention",
    "ConvStem": "a stem of plain convolutions",
    "FeatureListNet": "a ResNet-D as stem",
    "": "no pooling: a label for every token",
    "avgmax": "pooling by maximum",
    "max": "pooling by maximum",
    "prr": "patch representation refinement",
}
SETTINGS_OF_TRAINING = {"strict_img_size", "pretrained_strict", "out_indices", "features_only"}  # of timm's factory


class Architecture(NamedTuple):
    """One of timm's entry points."""

    name: str
    model_class: str
    arguments: dict[str, Any]  # all of the class's
    position_resize: str
    tags: dict[str, tuple[int, dict[str, Any]]]  # outputs of the published head, and its preprocessing

    def with_arguments(self, changes: dict[str, Any]) -> dict[str, Any]:
        """The arguments with others in place. Raises CheckpointError for one that the class does not have."""
        known = self.arguments.keys() | WORDS.keys() | SETTINGS_OF_TRAINING
        if unknown := sorted(name for name in changes.keys() - known if not name.endswith("_rate")):
            raise CheckpointError(f"{self.name} has no argument {', '.join(unknown)}")
        return {**self.arguments, **changes}

    def published(self, tag: str | None, outputs: int) -> dict[str, dict[str, Any]]:
        """Preprocessing by tag: of the one that is named, else of those with so many outputs, else of all."""
        if tag in self.tags:
            return {f"{self.name}.{tag}": self.tags[tag][1]}
        alike = {name: recipe for name, (heads, recipe) in self.tags.items() if heads == outputs}
        return {
            f"{self.name}.{name}": recipe
            for name, recipe in (alike or {n: r for n, (_, r) in self.tags.items()}).items()
        }


@cache
def table() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(TABLE.read_text())
    return content


def find(name: str) -> tuple[Architecture, str | None]:
    """The architecture of a name such as `vit_base_patch16_224` or `vit_base_patch16_224.augreg_in21k`, and its tag.

    Raises CheckpointError for one that is not in the table.
    """
    known = table()
    name, _, tag = known["aliases"].get(name, name).partition(".")
    if name not in known["architectures"]:
        close = difflib.get_close_matches(name, known["architectures"], n=3)
        raise CheckpointError(
            f"architecture {name} is none of the {len(known['architectures'])} plain Vision Transformers"
            f" of timm {known['timm']}" + (f"; did you mean {' or '.join(close)}?" if close else "")
        )
    entry = dict(known["architectures"][name])
    model_class, position_resize = entry.pop("class"), entry.pop("position_resize", "bicubic_antialias")
    tags = {tag: (outputs, known["recipes"][recipe]) for tag, (outputs, recipe) in entry.pop("tags").items()}
    arguments = {**known["classes"][model_class], **entry}
    return Architecture(name, model_class, arguments, position_resize, tags), tag or None


def network(
    architecture: Architecture, arguments: dict[str, Any], *, image_size: tuple[int, int], num_classes: int
) -> ViTConfig:
    """The configuration with the numbers of a timm class and its arguments.

    Raises CheckpointError with the argument that stands in the way.
    """
    said = {**table()["classes"]["VisionTransformer"], **arguments}
    if architecture.model_class == "Beit":
        said["fc_norm"] = said["use_fc_norm"]
        said["pos_embed"] = "learn" if said["use_abs_pos_emb"] else ""
        if said["swiglu_mlp"]:
            said.update(mlp_layer="SwiGLU", act_layer="silu")
    elif architecture.model_class == "VisionTransformerRelPos":
        said["pos_embed"] = ""
    relative = architecture.model_class == "VisionTransformerRelPos" or any(
        said.get(name) for name in ("use_rel_pos_bias", "use_shared_rel_pos_bias")
    )

    position_resize = architecture.position_resize
    if relative:
        position_resize = "none" if said.get("rel_pos_type") == "mlp" else "geometric"

    word = {name: _word(architecture, name, said[name]) for name in WORDS.keys() & said.keys() - {"norm_layer"}}
    norm, norm_eps = _norm(architecture, said["norm_layer"])
    prefix = said["class_token"] + said["reg_tokens"]
    pool = word["global_pool"]
    if said["pool_include_prefix"] and prefix:
        if pool == "map":
            raise CheckpointError(f"{architecture.name} pools its prefix by attention too, which is not supported")
        pool = "mean_all" if pool == "mean" else pool
    if said["scale_attn_norm"] != said["scale_mlp_norm"]:
        raise CheckpointError(f"{architecture.name} has one of scale_attn_norm and scale_mlp_norm, not both")
    if said["embed_norm_layer"] and _norm(architecture, said["embed_norm_layer"]) != (norm, norm_eps):
        raise CheckpointError(f"{architecture.name} has an embed_norm_layer that is not its norm_layer")
    stem = said["embed_layer"]
    if isinstance(stem, str):
        raise CheckpointError(f"{architecture.name} has {REFUSED.get(stem, stem)}, which is not supported")
    if relative and word["pos_embed"] != "none":
        raise CheckpointError(
            f"{architecture.name} has absolute and relative positions, which are not supported at once"
        )
    after_pool = said["global_pool"] in ("avg", "avgmax", "max") if said["fc_norm"] is None else said["fc_norm"]
    hidden = int(said["embed_dim"] * said["mlp_ratio"])
    distilled = architecture.model_class == "VisionTransformerDistilled"
    block = word["block_fn"]
    try:
        return ViTConfig(
            image_size=image_size,
            patch_size=_side(architecture, said["patch_size"]) * (1 if stem is None else 4 << max(len(stem) - 1, 0)),
            width=said["embed_dim"],
            depth=said["depth"],
            mlp_dim=hidden // 2 if word["mlp_layer"] == "packed" else hidden,
            heads=said["num_heads"],
            num_classes=num_classes,
            stem_layers=None if stem is None else tuple(stem),
            patch_bias=not said["pre_norm"],
            patch_norm="after" if said["embed_norm_layer"] else "none",
            class_token=said["class_token"],
            distillation_token=distilled,
            registers=said["reg_tokens"],
            positions=word["pos_embed"],
            position_resize=position_resize,  # type: ignore[arg-type] # checked by ViTConfig
            relative_bias=relative,
            norm_pre=said["pre_norm"],
            block=block,
            norm=norm,
            norm_eps=norm_eps,
            layer_scale=bool(said["init_values"]) and block != "res_post",  # there it initialises the norms
            inner_norm=said["scale_attn_norm"],
            qkv_bias=said["qkv_bias"],
            qk_norm=said["qk_norm"],
            activation=word["act_layer"],
            gated_mlp=word["mlp_layer"] != "plain",
            final_norm="none" if not said["final_norm"] else "after_pool" if after_pool else "before_pool",
            pool=pool,
            distillation_head=distilled,
        )
    except ValueError as error:
        raise CheckpointError(f"{architecture.name}: {error}") from None


def _word(architecture: Architecture, argument: str, value: Any) -> Any:
    if value in WORDS[argument]:
        return WORDS[argument][value]
    can = f"supported are {', '.join(repr(known) for known in WORDS[argument])}"
    why = f"that is {REFUSED[value]}, which is not supported" if value in REFUSED else can
    raise CheckpointError(f"{architecture.name} has {argument}={value!r}: {why}")


def _norm(architecture: Architecture, layer: Any) -> tuple[Any, float]:
    """Kind and eps of a norm: a name stands for timm's own class, whose eps is 1e-6."""
    name, eps = (layer, 1e-6) if isinstance(layer, str) else layer
    return _word(architecture, "norm_layer", name.replace("_", "").lower()), eps


def _side(architecture: Architecture, size: Any) -> int:
    sides = {size} if isinstance(size, int) else set(size)
    if len(sides) != 1:
        raise CheckpointError(f"{architecture.name} has patches of {size}; only square ones are supported")
    return int(sides.pop())
