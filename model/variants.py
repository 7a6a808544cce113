"""Named variants of the network: the paper's B, L and H, and smaller ones of the same kind."""

from typing import Any

from model.config import ViTConfig

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
# The choices of appendix D.4, as fields of ViTConfig. The paper's relative positions are keys of an attention of their
# own; these are BEiT's biases, which serve the same end.
POSITIONS: dict[str, dict[str, Any]] = {
    "none": {"positions": "none"},
    "1-D": {"positions": "learned"},
    "2-D": {"positions": "learned_2d"},
    "relative": {"positions": "none", "relative_bias": True},
}


def variant(
    name: str, *, image_size: tuple[int, int] = (224, 224), num_classes: int = 1000, **changes: Any
) -> ViTConfig:
    """The configuration of a named variant, such as `variant("B/16")`.

    Raises ValueError for a name that is not in VARIANTS.
    """
    if name not in VARIANTS:
        raise ValueError(f"unknown variant {name!r}, known are {', '.join(VARIANTS)}")
    size, patch = name.split("/")
    sizes = zip(("width", "depth", "mlp_dim", "heads"), SIZES[size], strict=True)
    return ViTConfig(image_size=image_size, patch_size=int(patch), num_classes=num_classes, **dict(sizes) | changes)
