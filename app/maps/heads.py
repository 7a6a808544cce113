"""Numbers of one image by layer and head: which heads mattered for a label, and when the answer formed."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.bundle import Manifest
from app.maps.record import Maps


@dataclass(frozen=True, kw_only=True)
class HeadReport:
    """Each array is (layers, heads)."""

    entropy: npt.NDArray[np.float32]  # bits, of the class token's row over all tokens: 0 to log2(tokens)
    distance: npt.NDArray[np.float32]  # patches: mean attention distance
    contribution: npt.NDArray[np.float32] | None  # direct contribution to the class's logit, summed over tokens
    share: npt.NDArray[np.float32] | None  # contribution / logit: means little where the logit is near zero or negative


def head_report(maps: Maps, k: int | None) -> HeadReport:
    """Report on class `k` of the maps' most likely classes; None: without a class, as for a model without a head."""
    contribution = share = None
    if k is not None:
        contribution = maps.evidence_heads[k]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = contribution / maps.logits[k]
    return HeadReport(entropy=entropy(maps.attention), distance=maps.distance, contribution=contribution, share=share)


def every_head(maps: Maps, manifest: Manifest) -> npt.NDArray[np.float32]:
    """The class token's row of all heads of all layers, patches alone: (layers, heads, rows, columns)."""
    patches = maps.attention[..., len(manifest.tokens.prefix) :]
    return patches.reshape(*patches.shape[:2], *manifest.tokens.grid)


def entropy(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Shannon entropy in bits of distributions along the last axis. Their sum may differ from 1 by rounding."""
    p = rows / rows.sum(axis=-1, keepdims=True)
    bits = np.log2(p, out=np.zeros_like(p), where=p > 0)
    return np.asarray(-(p * bits).sum(axis=-1))
