"""Which of timm's networks a state dict without a name can be: by what its tensors show.

Not all shows. Networks that differ in the number of heads, in the activation or in preprocessing alone look the same.
"""

from math import isqrt, prod
from typing import Any, NamedTuple

from model.checkpoints.checkpoint import CheckpointError, first_few
from model.checkpoints.facts import BY_HAND, Facts
from model.checkpoints.families.timm_architectures import Architecture, find, table
from model.checkpoints.families.timm_network import network, patch_side
from model.checkpoints.source import Source
from model.checkpoints.tensors import doubt_of_heads
from model.config import ViTConfig, stem_stride

MOST_NAMED = 5
SIZES = {"width": "embed_dim", "depth": "depth", "mlp_dim": "mlp_ratio", "patch_size": "patch_size"}  # to timm's


class Candidate(NamedTuple):
    architecture: Architecture
    config: ViTConfig
    shows: dict[str, Any]
    grid: tuple[int, int]


def need_architecture(source: Source, facts: Facts, *, other: str) -> str:
    """The architecture that a person has set. Where there is none, `facts` gets what the tensors show, and the names of
    the networks that fit them, with that of facebookresearch, `other`, if there is one. The names of `source` are ours.
    """
    shown = _shown(source)
    doubt = doubt_of_heads(source, shown["width"])
    if "architecture" in facts.overrides:
        if doubt:
            facts.need({"num_heads": max(shown["width"] // 64, 1)}, why=doubt)
        return facts.resolve("architecture", "", BY_HAND)
    alike = _alike(source, shown)
    fits = [one for one in alike if one.shows == shown]
    examples: dict[str, Any] = {"architecture": (fits or alike)[0].architecture.name if alike else "NAME"}
    if not fits:
        examples |= _arguments(shown, alike[0]) if alike else {}
    if other and other.lower()[:3] in source.file.name.lower():
        examples = {"architecture": other}
    recipes = {str(recipe) for one in fits for _, recipe in one.architecture.tags.values()}
    why = " ".join(
        ["the file does not say architecture."]
        + [f"timm networks that fit: {_named(fits)}." if fits else "No network of timm fits its tensors."]
        + [f"facebookresearch's {other} fits too: --set architecture={other}."] * bool(other)
        + ["Their preprocessing differs, and nothing in the file tells them apart."] * (len(recipes) > 1)
        + ["Give the one that the training began with"]
        + ["and the arguments that were changed"] * (not fits)
    )
    guess = ", whose number of heads is a guess" if "num_heads" in examples else ""
    facts.need(examples, why=f"{why}, as in this example{guess}")
    raise CheckpointError(*facts.missing)  # all else depends on it


def _alike(source: Source, shown: dict[str, Any]) -> list[Candidate]:
    """The networks with the same layers, of any size: first those of the same size, of which the likest come first."""
    grid, outputs = _grid(source, shown), _outputs(source)
    norms = {name for name in ("norm", "fc_norm") if f"{name}.weight" in source}
    as_eva = any(theirs.endswith((".gamma_1", ".q_bias", ".q_proj.weight")) for theirs in source.names_in_file.values())

    def unlike(one: Candidate) -> tuple[int, ...]:
        own = {"before_pool": {"norm"}, "after_pool": {"fc_norm"}, "none": set()}[one.config.final_norm]
        return (
            sum(one.shows[name] != shown[name] for name in SIZES),
            grid is not None and one.grid != grid,
            norms != own,
            as_eva != (one.architecture.model_class in ("Beit", "Eva")),
            outputs not in {heads for heads, _ in one.architecture.tags.values()},
            -len(one.architecture.tags),
        )

    switches = shown.keys() - SIZES
    candidates = (one for name in table()["architectures"] if (one := _candidate(name)))
    return sorted((one for one in candidates if all(one.shows[key] == shown[key] for key in switches)), key=unlike)


def _candidate(name: str) -> Candidate | None:
    architecture, _ = find(name)
    _, recipe = next(iter(architecture.tags.values()))
    side = patch_side(architecture) or 1
    height, width = (pixels - pixels % side for pixels in recipe["input_size"][1:])
    try:
        config = network(architecture, image_size=(height, width), num_classes=1)
    except CheckpointError:  # not supported
        return None
    shows = {
        "width": config.width,
        "depth": config.depth,
        "mlp_dim": config.mlp_dim,
        "patch_size": config.patch_size,
        "stem": config.stem_layers,
        "class token": config.class_token,
        "distillation token": config.distillation_token,
        "registers": config.registers,
        "positions": config.positions == "learned",
        "relative": config.relative_bias and architecture.arguments.get("rel_pos_type", "bias"),
        "frequencies": config.rope is not None and config.rope.kind == "learned",
        "norm before": config.norm_pre,
        "patch norm": config.patch_norm == "after",
        "parallel": config.block == "parallel",
        "norm biases": config.norm == "layer",
        "layer scale": config.layer_scale,
        "qkv biases": config.qkv_bias,
        "biases": architecture.arguments.get("proj_bias", True),
        "norm of queries": config.qk_norm,
        "norm of attention": config.inner_norm,
        "norm of MLP": config.inner_norm or config.mlp_norm,
        "gated": config.gated_mlp,
        "attention pool": config.pools_by_attention,
    }
    return Candidate(architecture, config, shows, config.grid)


def _shown(source: Source) -> dict[str, Any]:
    def has(*names: str) -> bool:
        return any(name in source for name in names)

    block, attn = "blocks.0.", "blocks.0.attn."

    def shape(name: str) -> tuple[int, ...]:
        return source.shape(name) if name in source else (0, 0)

    width, *kernel = shape("patch_embed.proj.weight")
    stages = source.count(r"patch_embed\.backbone\.stages\.(\d+)\.")
    of_stages = (source.count(rf"patch_embed\.backbone\.stages\.{i}\.blocks\.(\d+)\.") for i in range(stages))
    stem = tuple(of_stages) if has("patch_embed.backbone.stem.conv.weight") else None
    side = kernel[-1] if len(kernel) > 1 else isqrt(kernel[0] // 3)  # old files have a matrix
    hidden = shape(f"{block}mlp.fc2.weight")[1]
    gated = has(f"{block}mlp.fc1_g.weight") or shape(f"{block}mlp.fc1.weight")[0] not in (0, hidden)  # 0: in_proj
    relative = next((key for key in source.names if "rel_pos.mlp" in key or "relative_position_bias" in key), "")
    return {
        "width": width,
        "depth": source.count(r"blocks\.(\d+)\."),
        "mlp_dim": hidden,
        "patch_size": side * stem_stride(stem),
        "stem": stem,
        "class token": has("cls_token"),
        "distillation token": has("dist_token"),
        "registers": shape("reg_token")[1],
        "positions": has("pos_embed"),
        "relative": bool(relative) and ("mlp" if "rel_pos.mlp" in relative else "bias"),
        "frequencies": has("rope.freqs"),
        "norm before": has("norm_pre.weight"),
        "patch norm": has("patch_embed.norm.weight"),
        "parallel": has(f"{block}in_proj.weight"),
        "norm biases": has(f"{block}norm1.bias"),
        "layer scale": has(f"{block}ls1.gamma"),
        "qkv biases": has(f"{attn}qkv.bias", f"{attn}q.bias", f"{block}in_proj.bias"),
        "biases": has(f"{attn}proj.bias"),
        "norm of queries": has(f"{attn}q_norm.weight"),
        "norm of attention": has(f"{attn}norm.weight"),
        "norm of MLP": has(f"{block}mlp.norm.weight"),
        "gated": gated,
        "attention pool": has("attn_pool.latent"),
    }


def _grid(source: Source, shown: dict[str, Any]) -> tuple[int, int] | None:
    """Rows and columns of a table of positions for a square, with or without rows for the tokens before the patches."""
    if "pos_embed" not in source:
        return None
    rows = prod(source.shape("pos_embed")[:-1])
    before = shown["class token"] + shown["distillation token"] + shown["registers"]
    return next(
        ((side, side) for slots in (before, 0) if (side := isqrt(max(rows - slots, 0))) ** 2 == rows - slots), None
    )


def _outputs(source: Source) -> int:
    return source.shape("head.weight")[0] if "head.weight" in source else 0


def _arguments(shown: dict[str, Any], one: Candidate) -> dict[str, Any]:
    """timm's arguments for the sizes in which a file differs from a network."""
    changed = {SIZES[name]: shown[name] for name in SIZES if shown[name] != one.shows[name]}
    if "embed_dim" in changed:
        changed["num_heads"] = max(shown["width"] // 64, 1)
    changed.pop("mlp_ratio", None)
    if shown["mlp_dim"] != int(shown["width"] * one.architecture.arguments["mlp_ratio"]):
        changed["mlp_ratio"] = shown["mlp_dim"] / max(shown["width"], 1)
    return changed


def _named(fits: list[Candidate]) -> str:
    return first_few([one.architecture.name for one in fits], most=MOST_NAMED)
