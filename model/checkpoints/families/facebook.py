"""facebookresearch's own files: DeiT and DeiT-3, MAE, DINO, DINOv2 and DINOv3, with or without their heads.

Nearly all names are timm's, which this network uses too. All DINOs publish a backbone and, in a second file, a linear
classifier on features of the last blocks: a folder with both files is one checkpoint. Alone, it gives embeddings.
"""

import re
from functools import partial
from typing import Literal, NamedTuple

from model.checkpoints.checkpoint import CheckpointError, Description, Origin, first_few
from model.checkpoints.facts import BY_HAND, LEFT_OUT, Facts
from model.checkpoints.families import dinov3
from model.checkpoints.families.timm_architectures import named_in
from model.checkpoints.networks import is_head
from model.checkpoints.recipe import imagenet, resolve_recipe, squashed
from model.checkpoints.source import Source
from model.checkpoints.tensors import (
    State,
    doubt_of_heads,
    has_fixed_positions,
    join_blocks,
    resolve_heads,
    square_grid,
)
from model.config import PositionResize, ViTConfig
from model.preprocessing import Channels, Interpolation, Preprocessing

NAMES = (
    (r"^blocks\.\d+\.(\d+)\.", r"blocks.\1."),  # DINOv2's chunks for FSDP; blocks are numbered through
    (r"\.gamma_([12])$", r".ls\1.gamma"),  # DeiT-3
    (r"\.mlp\.w12\.", ".mlp.fc1."),  # DINOv2 giant
    (r"^register_tokens$", "reg_token"),
    (r"^pre_logits\.fc\.", "pre_logits."),  # timm until 0.5, from which DeiT's and MAE's networks were made
    *dinov3.NAMES,
    (r"^(linear\.|linear_head\.|classifier\.|)(weight|bias)$", r"head.\2"),  # DINO; DINOv2 from torch.hub, and its file
)
# The token that replaces patches in training, and the projections for the losses of DINO and iBOT.
TRAINING_ONLY = rf"{dinov3.TRAINING_ONLY}|head\.(mlp\.\d+|last_layer)\..*|(dino|ibot)_head\..*|decoder_.*"
HEADS = dict.fromkeys(("head", "head_dist", "linear", "linear_head", "classifier"), TRAINING_ONLY)
# Heads by width and number of blocks.
PUBLISHED = {
    (192, 12): 3, (384, 12): 6, (512, 12): 8, (768, 12): 12, (1024, 24): 16, (1280, 32): 16, (1536, 40): 24,
    (384, 36): 6, (768, 36): 12, (1280, 52): 16,  # of DeiT III alone: models_v2.py
}  # fmt: skip
MOCO_ARCHITECTURES = ("vit_small", "vit_base")  # as moco-v3's scripts call them in `arch`


class Member(NamedTuple):
    """What a repository's code fixes. All but DINOv3 have ImageNet's mean."""

    name: str
    position_resize: PositionResize
    pool: Literal["cls", "mean", "cls_mean"]
    evaluation: str  # the file with the preprocessing
    crop_share: float = 0.875  # side of the crop over the short side after the resize: 224 / 256
    large_crop_share: float | None = None  # the same above 224 pixels, where it differs
    side: int | None = None  # pixels of the crop; None if it is what the table of positions was trained for
    interpolation: Interpolation = "bicubic"
    vectors: tuple[int, ...] = (1,)  # that published heads read; none if there are heads of any number


DEIT = Member("DeiT", "bicubic", "cls", "deit main.py, --eval-crop-ratio")
DEIT3 = Member("DeiT-3", "bicubic", "cls", "deit README_revenge.md", crop_share=1.0)
MAE = Member("MAE", "bicubic", "mean", "mae util/datasets.py", large_crop_share=1.0)
MOCO = Member("MoCo v3", "bicubic", "cls", "moco-v3 main_lincls.py", interpolation="bilinear")
DINO = Member("DINO", "bicubic_offset", "cls_mean", "dino eval_linear.py", vectors=())
# The tables of DINOv2 are of 518 pixels: positions are interpolated.
DINOV2 = Member("DINOv2", "bicubic_offset", "cls_mean", "dinov2 data/transforms.py", side=224, vectors=(1, 2, 5))
DINOV2_REGISTERS = DINOV2._replace(name="DINOv2 with registers", position_resize="bicubic_antialias")
DINOV3 = Member(
    "DINOv3", "bicubic", "cls_mean", "dinov3 README.md, make_transform", side=dinov3.SIDE, vectors=(1, 2, 5)
)
MEMBERS = {one.name: one for one in (DEIT, DEIT3, MAE, MOCO, DINO, DINOV2, DINOV2_REGISTERS, DINOV3)}
# Arguments of each repository's scripts, of which others have none.
SCRIPTS = {
    DEIT: {"eval_crop_ratio", "distillation_type"},
    DEIT3: {"eval_crop_ratio", "distillation_type"},
    MAE: {"blr", "global_pool"},
    DINO: {"out_dim"},
    MOCO: {"moco_t", "moco_m"},
}


def recognises(source: Source) -> bool:
    return member_of(source) is not None


def is_believed(source: Source) -> bool:
    """Whether the file proves the member, or no other library has a network that computes something else, or begins
    with other pixels, with the same tensors.
    """
    match member := member_of(source):
        case None:
            return False
        case _ if _by_script(source, member):
            return True
        case Member(name="DeiT-3"):  # RoPE-ViT has them too
            return False
        case Member(name="DeiT"):
            return "head_dist.weight" in source and "model" in source.wrappers  # no other network has two heads
        case Member(name="MAE"):
            return "mask_token" in source or any(name.startswith("decoder_") for name in source.names)
        case Member(name="DINO"):
            own = re.compile(r"head\.(mlp|last_layer)\..*")
            return any(own.fullmatch(name) for name in source.names) or _reads_several(source)
    return True


def _reads_several(source: Source) -> bool:
    """Whether there is the classifier of eval_linear.py, on tokens of several blocks or on their mean too."""
    width = source.shape("cls_token")[-1]
    return any(source.shape(name)[1] > width for name in ("weight", "linear.weight") if name in source)


def _by_script(source: Source, member: Member) -> bool:
    return bool(SCRIPTS.get(member, set()) & source.arguments.keys())


def member_of(source: Source) -> Member | None:
    """The one that the names of the tensors resemble. None for the files of other libraries; timm's own have a
    config.json, or name their architecture.
    """
    named = source.config or (named_in(source) and not _by_script(source, DEIT))  # which calls its own as timm does
    if not named and dinov3.is_original(source):
        return DINOV3
    attention = ("blocks.0.attn.qkv.bias", "blocks.0.0.attn.qkv.bias")  # the second in DINOv2's chunks
    embedding = ("cls_token", "pos_embed", "patch_embed.proj.weight")
    if named or not (any(name in source for name in attention) and all(name in source for name in embedding)):
        return None
    wrapped, tuned_mae = "model" in source.wrappers, _by_script(source, MAE)
    heads = {name.partition(".")[0] for name in source.names if not re.fullmatch(TRAINING_ONLY, name)}
    heads = {name for name in heads if is_head(name)} - {"linear"}  # DINO's own
    evidence = {
        MOCO: bool({*MOCO_ARCHITECTURES} & {*source.architectures}) and has_fixed_positions(source),
        DINOV2_REGISTERS: "register_tokens" in source,
        DINOV2: "mask_token" in source and len(source.shape("mask_token")) == 2,  # MAE's has three dimensions
        DEIT3: "blocks.0.gamma_1" in source,
        MAE: "fc_norm.weight" in source or (wrapped and (not heads or tuned_mae)),
        DEIT: "head" in heads,
        DINO: not heads,
    }
    return next((member for member, holds in evidence.items() if holds), None)


def describe(source: Source, facts: Facts) -> Description:
    """All facts follow from shapes but the number of heads, which follows from the published sizes."""
    member = member_of(source)
    assert member is not None
    origin = Origin.stated if _by_script(source, member) else Origin.guessed
    member = MEMBERS[facts.resolve("architecture", member.name, origin("names of the tensors"))]
    if "architecture" in facts.overrides:
        origin = partial(Origin, BY_HAND.source)
    # What a script of the member does with pixels is not in the file.
    of_pixels = Origin("by hand" if "architecture" in facts.overrides else "guessed", member.evaluation)
    facts.network = origin(f"facebookresearch's {member.name}")
    layers = [name for name in source.names if name.startswith("head.mlp.") and name.endswith(".weight")]
    if layers and facts.serves_head and not any(name.startswith("head.last_layer.") for name in source.names):
        raise CheckpointError(f"{first_few(layers)}: a head of more than one layer is not supported. {LEFT_OUT}")
    width, _, patch, _ = source.shape("patch_embed.proj.weight")
    channels = dinov3.published_channels(source, width) if member is DINOV3 else None
    source.rename(NAMES, dropping=TRAINING_ONLY)
    grid = square_grid(source.shape("pos_embed")[1]) if "pos_embed" in source else None
    if member is DINOV3:
        preprocessing = _of_dinov3(facts, channels, of_pixels)
    else:
        assert grid is not None
        preprocessing = _preprocessing(facts, member, member.side or grid[0] * patch, of_pixels)
    num_classes, features = source.shape("head.weight") if "head.weight" in source else (0, width)
    vectors = 1 if "pre_logits.weight" in source else features // width  # that the head reads side by side
    said = source.arguments.get("nb_classes")
    if num_classes and said not in (None, num_classes) and facts.overrides.get("num_classes") != "0":
        raise CheckpointError(f"args in the file say {said} classes, the head has {num_classes}")
    if num_classes:
        alone = vectors == 1 or (member is DINO and vectors != 2)  # the class token of a layer, or of each of several
        pool = "cls" if member.pool == "cls_mean" and alone else member.pool
        if member is MAE and "fc_norm.weight" not in source:  # main_finetune.py --cls_token
            pool = "cls"
        if member.vectors and vectors not in member.vectors:
            why = (
                f"the head reads {features:,} numbers, {vectors} times the width, as no published head of {member.name}"
            )
            (pool,) = facts.need({"pool": "cls_mean"}, why=f"{why}: give what it reads, as in this example")
        pool = facts.resolve("pool", pool, facts.network._replace(where=f"width {features} of the head"))
    else:
        pool = "mean" if "fc_norm.weight" in source else "cls"  # that norm is for the mean of the patches
        where = f"a backbone of {member.name} without the file of a linear head beside it"
        pool = facts.resolve("pool", pool, facts.network._replace(where=where))
    hidden = source.shape("blocks.0.mlp.fc2.weight")[1]
    gated = source.shape("blocks.0.mlp.fc1.weight")[0] != hidden or "blocks.0.mlp.fc1_g.weight" in source
    depth = source.count(r"blocks\.(\d+)\.")
    heads = _heads(source, facts, member, width=width, depth=depth)
    return Description(
        family="facebookresearch",
        architecture=member.name,
        config=ViTConfig(
            image_size=preprocessing.size,
            patch_size=patch,
            width=width,
            depth=depth,
            mlp_dim=hidden,
            heads=heads,
            num_classes=num_classes,
            distillation_token="dist_token" in source,
            registers=source.shape("reg_token")[1] if "reg_token" in source else 0,
            positions="learned" if grid else "none",
            position_resize=member.position_resize,
            rope=dinov3.ROPE if member is DINOV3 else None,
            norm_eps=dinov3.NORM_EPS if member is DINOV3 else 1e-6,
            qkv_bias="blocks.0.attn.qkv.bias" in source,
            layer_scale="blocks.0.ls1.gamma" in source,
            activation="silu" if gated else "gelu",
            gated_mlp=gated,
            final_norm="after_pool" if "fc_norm.weight" in source else "before_pool",
            pool=pool,
            head_layers=vectors - (pool == "cls_mean"),
            distillation_head="head_dist.weight" in source,
            representation_size=source.shape("pre_logits.weight")[0]
            if num_classes and "pre_logits.weight" in source
            else None,
        ),
        grid=grid,
        preprocessing=preprocessing,
    )


def _heads(source: Source, facts: Facts, member: Member, *, width: int, depth: int) -> int:
    """Those of the published networks of this size; where there are none or several, a person has to give them."""
    if dinov3.PERIODS in source:  # two numbers of a head's width have two coordinates
        return facts.resolve(
            "heads", width // (4 * source.shape(dinov3.PERIODS)[0]), Origin.read(f"number of {dinov3.PERIODS}")
        )
    if member is MOCO:
        return facts.resolve("heads", 12, Origin.stated("moco-v3 vits.py"))
    known = PUBLISHED.get((width, depth))
    if known and (why := doubt_of_heads(source, width)):
        return int(facts.need({"heads": known}, why=why)[0])
    return resolve_heads(facts, known, f"all published models of width {width} with {depth} blocks", width=width)


def _preprocessing(facts: Facts, member: Member, side: int, origin: Origin) -> Preprocessing:
    share = (side > 224 and member.large_crop_share) or member.crop_share
    return resolve_recipe(
        facts,
        imagenet(side, resized=int(side / share), interpolation=member.interpolation),
        origin,
        sized_by=None if member.side else Origin.read("the table of positions"),
    )


def _of_dinov3(facts: Facts, channels: tuple[Channels, Channels] | None, origin: Origin) -> Preprocessing:
    """README.md's transform. Mean and std are those of `channels`, or else a person has to give them."""
    if channels is None:
        (mean, std), others = dinov3.LVD, dinov3.SAT
        mean, std = facts.need(
            {"mean": mean, "std": std},
            why="the file does not say whether it learned from images of the web (LVD-1689M) or of satellites "
            f"(SAT-493M), whose mean is {others[0]} and std {others[1]}: give them, as in this example for the web",
        )
        channels = mean, std
    mean, std = channels
    recipe = squashed((dinov3.SIDE, dinov3.SIDE), "bilinear", mean=mean, std=std)
    return resolve_recipe(facts, recipe, origin)


def tensors(state: State, description: Description) -> State:
    if description.architecture == DINOV3.name:
        dinov3.convert(state, description.config)
        join_blocks(state, description.config)
    if description.architecture == DINO.name and description.config.pool == "cls_mean":
        # eval_linear.py stacks the class token and the mean on a last axis and flattens: their features alternate
        state["head.weight"] = state["head.weight"].unflatten(1, (-1, 2)).transpose(1, 2).flatten(1)
    return state
