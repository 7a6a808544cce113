"""Sizes and switches of a Vision Transformer: one frozen record. Without torch."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

PositionResize = Literal[
    "bicubic_antialias",  # timm torch files, OpenCLIP, DINOv2 with registers
    "bicubic",  # Hugging Face
    "bicubic_corners",  # torchvision: corners aligned
    "bicubic_offset",  # DINO and DINOv2: scale factor (n + 0.1) / m
    "bilinear",  # timm for Google's npz; Hugging Face BEiT's relative tables
    "bilinear_corners",  # vit_jax and big_vision: scipy.ndimage.zoom of order 1
    "geometric",  # relative tables alone: BEiT as Microsoft and timm write it
    "none",  # relative tables of timm's MLPs: such a file is loaded for another size, not resized afterwards
]
Activation = Literal["gelu", "gelu_tanh", "quick_gelu", "silu"]  # tanh: JAX, SigLIP; quick: OpenAI's CLIP
Pool = Literal["cls", "mean", "mean_all", "map", "map_all", "cls_mean"]
PrefixToken = Literal["class", "distillation", "register"]

# Beyond these a size is a mistake, and torch's counts of elements could overflow.
LARGEST = {
    **dict.fromkeys(("image_size", "patch_size"), 2**16),
    **dict.fromkeys(("width", "mlp_dim", "num_classes", "attn_dim", "representation_size", "pool_mlp_dim"), 2**20),
    **dict.fromkeys(("depth", "heads", "stem_layers", "pool_heads", "registers"), 2**10),
}
SMALLEST = {"num_classes": 0, "registers": 0}  # the others must be 1 at least
MOST_PATCHES = 2**16  # attention has the square of it
LARGEST_TEMPERATURE = 1e12


@dataclass(frozen=True, kw_only=True)
class RopeConfig:
    """Rotary positions; model/rope.py computes them. Raises ValueError for values that are out of range."""

    kind: Literal["index", "centered", "learned"] = "index"  # places 0, 1, ...; DINOv3: -1 to 1; RoPE-mixed
    temperature: float = 10_000.0  # the lowest frequency is about 1 / temperature
    pairs: Literal["neighbours", "halves"] = "neighbours"  # channels 2i and 2i + 1, or i and i + d/2: DINOv3
    axes: Literal["yx", "xy"] = "yx"  # which coordinate the first half of the pairs follows
    offset: float = 0.0  # added to places
    reference: tuple[int, int] | None = None  # EVA-02, PE: places are scaled to this grid, that of pretraining

    def __post_init__(self) -> None:
        check_literals(self)
        if not 0 < self.temperature < LARGEST_TEMPERATURE:
            raise ValueError(f"the temperature of rope must be from 0 to {LARGEST_TEMPERATURE:.0e}")
        if not abs(self.offset) <= LARGEST["image_size"]:
            raise ValueError(f"the offset of rope must be at most {LARGEST['image_size']:,}, not {self.offset}")
        if self.reference is not None and not all(1 <= side <= LARGEST["image_size"] for side in self.reference):
            raise ValueError(f"the reference grid of rope must be two positive numbers, not {self.reference}")
        if self.kind == "learned" and self.reference is not None:
            raise ValueError("learned frequencies of rope have no reference grid")
        if self.kind == "learned" and self.pairs == "halves":
            raise ValueError("learned frequencies of rope turn neighbours, not halves")


@dataclass(frozen=True, kw_only=True)
class ViTConfig:
    """All that is needed to build the network; every field appears in a checkpoint's metadata.

    The fields without a default are the paper's; the defaults are the paper's network as timm and DeiT write it.
    Raises ValueError for values that contradict each other.
    """

    image_size: tuple[int, int]  # (height, width) in pixels, multiples of patch_size
    patch_size: int  # side of a token in pixels, the stem's stride included
    width: int  # token dimension D
    depth: int  # encoder blocks L
    mlp_dim: int  # hidden width, after gating
    heads: int
    num_classes: int  # 0: no head, the network ends with the vector that a head would read

    # Patches
    stem_layers: tuple[int, ...] | None = None  # hybrids: ResNet units per stage, () the root alone; None: no stem
    stem_numerics: Literal["timm", "flax"] = "timm"  # timm and Hugging Face, or Google; see model/resnet.py
    patch_bias: bool = True  # False: CLIP and all with norm_pre
    patch_norm: Literal["none", "after", "dual"] = "none"  # "after": AIMv2; "dual" (LN-Linear-LN): vit-pytorch >= 1.0

    # Tokens before the patches, in this order. Their own positions are constants and are part of the tokens.
    class_token: bool = True  # False: SigLIP, IJEPA, vit-pytorch SimpleViT, timm *_gap_*
    distillation_token: bool = False  # DeiT distilled, and every DeiT of Hugging Face
    registers: int = 0  # DINOv2 with registers, timm *_reg1_*, *_reg4_*

    # Positions
    positions: Literal["none", "learned", "learned_2d", "sincos2d"] = "learned"  # 2-D: paper, D.4; sincos: SimpleViT
    position_resize: PositionResize = "bicubic_antialias"  # how this checkpoint's library resizes
    relative_bias: bool = False  # BEiT: a bias per offset and head; a table shared by all layers is copied to each
    rope: RopeConfig | None = None  # EVA-02, DINOv3, Perception Encoder, timm *_rope_*; beside `positions`, or alone
    norm_pre: bool = False  # a norm before the first block: CLIP, OpenCLIP

    # Blocks
    block: Literal["pre_norm", "res_post", "parallel"] = "pre_norm"  # timm ResPostBlock, ParallelScalingBlock
    norm: Literal["layer", "rms"] = "layer"  # "rms": timm *_xp_*, AIMv2
    norm_eps: float = 1e-6  # flax, timm, torchvision, DINO; 1e-12 Hugging Face ViT; 1e-5 CLIP, vit-pytorch
    layer_scale: bool = False  # DINOv2, DeiT-3, BEiT, timm *_reg*
    inner_norm: bool = False  # BEiT-3: norms before attention's output projection and in the MLP before fc2
    mlp_norm: bool = False  # EVA-02: the second of these alone
    attn_dim: int | None = None  # heads * dim_head; None is width. vit-pytorch sets dim_head freely
    attn_proj: bool = True  # False: vit-pytorch with one head as wide as the token
    qkv_bias: bool = True  # False: vit-pytorch, timm *_miil, *_medium_*_gap_*, so150m2
    qk_norm: bool = False  # norms of each head's queries and keys: timm *_xp_*
    activation: Activation = "gelu"
    gated_mlp: bool = False  # activation(x1) * x2; SwiGLU with "silu": DINOv2 giant, AIMv2

    # Head
    final_norm: Literal["before_pool", "after_pool", "none"] = "before_pool"  # after: timm fc_norm, BEiT, MAE
    pool: Pool = "cls"  # see VisionTransformer.pooled
    pool_heads: int | None = None  # of an attention pool; None is heads
    pool_mlp_dim: int | None = None  # of an attention pool; None is mlp_dim
    head_layers: int = 1  # class tokens of that many last blocks side by side: DINO ViT-S and DINOv2 linear heads, 4
    representation_size: int | None = None  # width of the layer before the head, None where there is none
    representation: Literal["tanh", "linear", Activation, "relu", "sigmoid"] = "tanh"  # "linear": CLIP's projection
    representation_bias: bool = True  # False: CLIP projections
    head: Literal["linear", "cosine"] = "linear"  # "cosine" reads directions alone: CLIP and SigLIP, beside texts
    head_bias: bool = True  # False: CLIP projections, and CLIP beside texts
    distillation_head: bool = False  # DeiT distilled: a second head on its token, logits are the mean of both

    def __post_init__(self) -> None:
        check_literals(self)
        if complaint := next(self._complaints(), None):
            raise ValueError(complaint)

    def _complaints(self) -> Iterator[str]:
        """Sentences on what is wrong. The sizes come first, because the rest computes with them."""
        for name, largest in LARGEST.items():
            value = getattr(self, name)
            parts = value if isinstance(value, tuple) else (value,)
            least = SMALLEST.get(name, 1)
            if value is not None and not all(isinstance(part, int) and least <= part <= largest for part in parts):
                yield f"{name} must be from {least} to {largest:,}, not {value!r}"
        if not 0 < self.norm_eps < 1:
            yield f"norm_eps must be between 0 and 1, not {self.norm_eps}"
        if any(side % self.patch_size for side in self.image_size):
            yield f"image_size {self.image_size} is not a multiple of patch_size {self.patch_size}"
        if (patches := prod(self.grid)) > MOST_PATCHES:
            yield f"image_size {self.image_size} gives {patches:,} patches, more than {MOST_PATCHES:,}"
        if self.patch_size % self.stem_stride:
            yield f"patch_size {self.patch_size} is not a multiple of the stem's stride {self.stem_stride}"
        if self.patch_norm == "dual" and self.stem_layers is not None:
            yield 'patch_norm "dual" works on pixels, not on the features of a stem'
        if self.attn_width % self.heads:
            name = "width" if self.attn_dim is None else "attn_dim"
            yield f"{name} {self.attn_width} is not a multiple of heads {self.heads}"
        if not self.attn_proj and self.attn_width != self.width:
            yield "without attn_proj, attn_dim must be the width"
        if self.distillation_token and not self.class_token:
            yield "a distillation token needs a class token before it"
        if self.relative_bias and len(self.prefix) > self.class_token:
            yield "a relative bias covers patches and a class token, and no other token"
        if self.positions in ("learned_2d", "sincos2d") and self.width % 4:
            yield f"positions {self.positions!r} need a width that is a multiple of 4"
        if self.block == "res_post" and self.layer_scale:
            yield 'block "res_post" has no layer_scale'
        if self.pool in ("cls", "cls_mean") and not self.class_token:
            yield f'pool "{self.pool}" needs a class token'
        if not 1 <= self.head_layers <= self.depth:
            yield f"head_layers {self.head_layers} is not between 1 and depth {self.depth}"
        if self.pool not in ("cls", "cls_mean") and self.head_layers > 1:
            yield f'pool "{self.pool}" reads one layer, not {self.head_layers}'
        pool_heads = self.pool_heads or self.heads
        plain_mlp = not (self.gated_mlp or self.inner_norm or self.mlp_norm)
        if self.pools_by_attention and (self.width % pool_heads or not plain_mlp):
            yield f'pool "{self.pool}" splits width {self.width} into heads {pool_heads} and has a plain MLP'
        if self.rope is not None and self.attn_width // self.heads % 4:
            yield f"rope needs heads whose width is a multiple of 4, not {self.attn_width // self.heads}"
        if self.final_norm == "after_pool" and self.features != self.width:
            yield "tokens that are pooled side by side are normed before the pool, not after it"
        if self.num_classes and self.representation not in ("tanh", "linear"):
            yield f'a head reads a representation that is "tanh" or "linear", not "{self.representation}"'
        plain_head = self.head_layers == 1 and self.representation_size is None and self.final_norm != "after_pool"
        if self.distillation_head and self.head == "cosine":
            yield 'a distillation head is linear, and head "cosine" is not'
        if self.distillation_head and not (self.distillation_token and self.pool == "cls" and plain_head):
            yield 'a distillation head needs a distillation token, pool "cls" and one linear layer'

    @property
    def grid(self) -> tuple[int, int]:
        """Patches down and across."""
        height, width = self.image_size
        return height // self.patch_size, width // self.patch_size

    @property
    def prefix(self) -> tuple[PrefixToken, ...]:
        """Names of the tokens before the patches, in order."""
        names: list[PrefixToken] = ["class"] * self.class_token
        names += ["distillation"] * self.distillation_token
        names += ["register"] * self.registers
        return tuple(names)

    @property
    def stem_stride(self) -> int:
        return stem_stride(self.stem_layers)

    @property
    def attn_width(self) -> int:
        """All heads of a query side by side."""
        return self.width if self.attn_dim is None else self.attn_dim

    @property
    def pools_by_attention(self) -> bool:
        """Over the patches, or over all tokens."""
        return self.pool in ("map", "map_all")

    @property
    def features(self) -> int:
        """Width of the vector that the pool gives."""
        return self.width * (self.head_layers + (self.pool == "cls_mean"))

    @property
    def embedding(self) -> int:
        """Width of the vector that the head reads."""
        return self.representation_size or self.features

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        """Inverse of `to_json`. Raises TypeError for a field that is unknown or missing."""
        known = tuples(fields)
        rope = known.get("rope")
        return cls(**{**known, "rope": None if rope is None else RopeConfig(**tuples(rope))})


def stem_stride(layers: Sequence[int] | None) -> int:
    """Side of a feature of the stem in pixels: 4 after root and first stage, doubled by each further stage."""
    return 1 if layers is None else 4 << max(len(layers) - 1, 0)


def check_literals(config: Any) -> None:
    """Raises ValueError for a field of a dataclass that is none of the words of its type."""
    for name, hint in get_type_hints(type(config)).items():
        if get_origin(hint) is Literal and getattr(config, name) not in get_args(hint):
            raise ValueError(f"{name} {getattr(config, name)!r} is none of {', '.join(get_args(hint))}")


def tuples(fields: dict[str, Any]) -> dict[str, Any]:
    """The same with tuples in place of the lists that JSON has."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
