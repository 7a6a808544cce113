"""Records as a store keeps them: one layer, one head, two classes and a 2 x 2 grid unless a test says otherwise."""

from typing import Any

import numpy as np

from app.images.preprocess import Box, Prepared
from app.maps.record import Maps, Record


def make_maps(**changes: Any) -> Maps:
    fields: dict[str, Any] = {
        "attention": np.full((1, 1, 5), 0.2, np.float32),
        "rollout": np.full(5, 0.2, np.float32),
        "classes": np.arange(2),
        "logits": np.zeros(2, np.float32),
        "evidence": np.zeros((2, 1, 5), np.float32),
        "evidence_heads": np.zeros((2, 1, 1), np.float32),
        "evidence_rest": np.zeros((2, 2), np.float32),
        "distance": np.zeros((1, 1), np.float32),
        "lens": np.full((1, 2), 0.5, np.float32),
    }
    return Maps(**{**fields, **changes})


def make_prepared(**changes: Any) -> Prepared:
    fields: dict[str, Any] = {"size": (2, 2), "box": Box(0, 0, 2, 2), "format": "PNG", "thumbnail": b""}
    fields["pixels"] = np.zeros((2, 2, 3), np.uint8)
    return Prepared(**{**fields, **changes})


def make_record(**changes: Any) -> Record:
    return Record(**{"maps": make_maps(), "image": make_prepared(), **changes})
