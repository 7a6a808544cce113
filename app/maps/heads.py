"""Which heads mattered for a label, and when the answer formed: numbers of one picture by layer and head."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.maps.record import Maps


@dataclass(frozen=True, kw_only=True)
class HeadReport:
    """Each (layers, heads)."""

    entropy: npt.NDArray[np.float32]  # bits, of the class token's row over all tokens: 0 to log2(tokens)
    distance: npt.NDArray[np.float32]  # patches: mean attention distance
    contribution: npt.NDArray[np.float32]  # direct contribution to the class's logit, summed over tokens
    share: npt.NDArray[np.float32]  # the same over the logit: means little where that is near zero or negative


def head_report(maps: Maps, kept: int) -> HeadReport:
    """Report on class `kept` of the maps' most likely classes."""
    contribution = maps.evidence_heads[kept]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = contribution / maps.logits[kept]
    return HeadReport(entropy=entropy(maps.attention), distance=maps.distance, contribution=contribution, share=share)


def entropy(rows: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
    """Shannon entropy in bits of distributions along the last axis, which may have lost their sum of 1 to rounding."""
    p = rows.astype(np.float32)
    p = p / p.sum(axis=-1, keepdims=True)
    bits = np.log2(p, out=np.zeros_like(p), where=p > 0)
    return np.asarray(-(p * bits).sum(axis=-1))
