"""Records of images: one layer, one head, two classes and a 2 x 2 grid unless a test says otherwise."""

from typing import Any

import numpy as np

from app.images.preprocess import Box, PreprocessedImage
from app.maps.record import KeptImage, Maps, RecordFormat

FORMAT = RecordFormat(
    name="6:a model",
    shapes={
        "classes": (2,), "logits": (3,), "embedding": (4,), "attention": (1, 1, 5), "rollout": (5,),
        "evidence": (2, 1, 5), "evidence_heads": (2, 1, 1), "evidence_rest": (2, 2), "distance": (1, 1), "lens": (1, 2),
    },
    size=(2, 2),
)  # fmt: skip


def make_maps(**changes: Any) -> Maps:
    fields: dict[str, Any] = {
        "classes": np.arange(2),
        "logits": np.zeros(3, np.float32),
        "embedding": np.ones(4, np.float32),
        "attention": np.full((1, 1, 5), 0.2, np.float32),
        "rollout": np.full(5, 0.2, np.float32),
        "evidence": np.zeros((2, 1, 5), np.float32),
        "evidence_heads": np.zeros((2, 1, 1), np.float32),
        "evidence_rest": np.zeros((2, 2), np.float32),
        "distance": np.zeros((1, 1), np.float32),
        "lens": np.full((1, 2), 0.5, np.float32),
    }
    return Maps(**{**fields, **changes})


def make_prepared(**changes: Any) -> PreprocessedImage:
    fields: dict[str, Any] = {"size": (2, 2), "box": Box(0, 0, 2, 2), "format": "PNG", "thumbnail": b""}
    fields["pixels"] = np.zeros((2, 2, 3), np.uint8)
    return PreprocessedImage(**{**fields, **changes})


def make_kept(**changes: Any) -> KeptImage:
    return KeptImage(**{"classes": (0, 1), "image": make_prepared(), **changes})
