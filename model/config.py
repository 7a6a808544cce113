"""Sizes of a Vision Transformer: one frozen record and the table of named variants. Knows nothing of torch."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self


@dataclass(frozen=True, kw_only=True)
class ViTConfig:
    """What has to be known to build the network; every field appears in a checkpoint's metadata."""

    image_size: tuple[int, int]  # (height, width) in pixels, multiples of patch_size
    patch_size: int  # pixels, square
    width: int  # token dimension D
    depth: int  # encoder blocks L
    mlp_dim: int
    heads: int
    num_classes: int
    pool: Literal["cls", "mean"] = "cls"  # "mean" averages the patch tokens after the final norm
    class_token: bool = True
    representation_size: int | None = None  # width of the tanh hidden layer of the head, None for a linear head

    def __post_init__(self) -> None:
        if any(side % self.patch_size for side in self.image_size):
            raise ValueError(f"image_size {self.image_size} is not a multiple of patch_size {self.patch_size}")
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        if self.pool == "cls" and not self.class_token:
            raise ValueError('pool "cls" needs a class token')

    @property
    def grid(self) -> tuple[int, int]:
        """Patches down and across."""
        height, width = self.image_size
        return height // self.patch_size, width // self.patch_size

    @property
    def prefix(self) -> tuple[Literal["class"], ...]:
        """Names of the tokens that stand before the patches."""
        return ("class",) if self.class_token else ()

    def resized(self, image_size: tuple[int, int]) -> Self:
        """The same network for pictures of another (height, width)."""
        return replace(self, image_size=image_size)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        """Inverse of `to_json`. Raises TypeError for a field that is unknown or missing."""
        fields = dict(fields)
        height, width = fields.pop("image_size")
        return cls(image_size=(int(height), int(width)), **fields)


# width, depth, mlp_dim, heads: paper, Table 1 (B, L, H); big_vision `models/vit.py` decode_variant (mu, Ti, S).
SIZES: dict[str, tuple[int, int, int, int]] = {
    "mu": (32, 2, 128, 2),  # the same architecture at a size for tests
    "Ti": (192, 12, 768, 3),
    "S": (384, 12, 1536, 6),
    "B": (768, 12, 3072, 12),
    "L": (1024, 24, 4096, 16),
    "H": (1280, 32, 5120, 16),
}
PATCH_SIZES = (8, 14, 16, 32)
VARIANTS: tuple[str, ...] = tuple(f"{size}/{patch}" for size in SIZES for patch in PATCH_SIZES)


def variant(
    name: str, *, image_size: tuple[int, int] = (224, 224), num_classes: int = 1000, **changes: Any
) -> ViTConfig:
    """The configuration of a named variant, such as `variant("B/16")`.

    Raises ValueError for a name that is not in VARIANTS.
    """
    if name not in VARIANTS:
        raise ValueError(f"unknown variant {name!r}, known are {', '.join(VARIANTS)}")
    size, patch = name.split("/")
    width, depth, mlp_dim, heads = SIZES[size]
    return ViTConfig(
        image_size=image_size,
        patch_size=int(patch),
        width=width,
        depth=depth,
        mlp_dim=mlp_dim,
        heads=heads,
        num_classes=num_classes,
        **changes,
    )
