"""Numbers of one image by layer and head: which heads mattered for a label, and when the answer formed."""

import numpy as np
import numpy.typing as npt

from app.bundle import Manifest
from app.maps.record import Maps


def head_report(maps: Maps, k: int | None) -> dict[str, npt.NDArray[np.float32] | None]:
    """Arrays (layers, heads), for class `k` of the maps' most likely classes, or for none where the model has no head:

    entropy: bits, of the class token's row over all tokens, 0 to log2(tokens).
    distance: patches, the mean attention distance.
    contribution: direct contribution to the label's logit, summed over tokens; None without a label.
    share: contribution / logit, which means little where the logit is near zero or negative; None without a class.
    """
    contribution = share = None
    if k is not None:
        contribution = maps.evidence_heads[k]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = contribution / maps.logits[maps.classes[k]]
    return {"entropy": entropy(maps.attention), "distance": maps.distance, "contribution": contribution, "share": share}


def every_head(maps: Maps, manifest: Manifest) -> npt.NDArray[np.float32]:
    """The class token's row of all heads of all layers, patches alone: (layers, heads, rows, columns)."""
    patches = maps.attention[..., len(manifest.tokens.prefix) :]
    return patches.reshape(*patches.shape[:2], *manifest.tokens.grid)


def every_map(maps: Maps, manifest: Manifest) -> npt.NDArray[np.float32]:
    """All maps of the patches (maps, rows, columns): the heads of each layer, rollout, and for each of the classes the
    evidence of each layer.
    """
    rows = [part.reshape(-1, part.shape[-1]) for part in (maps.attention, maps.rollout, maps.evidence)]
    return np.concatenate(rows)[:, len(manifest.tokens.prefix) :].reshape(-1, *manifest.tokens.grid)


def entropy(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Shannon entropy in bits of distributions along the last axis. Their sum may differ from 1 by rounding."""
    p = rows / rows.sum(axis=-1, keepdims=True)
    bits = np.log2(p, out=np.zeros_like(p), where=p > 0)
    return np.asarray(-(p * bits).sum(axis=-1))
