"""A bundle that knows its images: the demo's, and embeddings of drawn images beside it."""

from pathlib import Path

import numpy as np

from app.bundle import FAMILIARITY, sha256
from app.inference.familiarity import Familiarity
from tests.support.edited import copied, edit


def familiar_bundle(folder: Path, embeddings: np.ndarray, classes: np.ndarray) -> Path:
    """A copy in `folder` of the demo bundle, which knows images with these embeddings (N, F) and classes (N,)."""
    bundle = copied(folder / "familiar")
    Familiarity.learn(embeddings[:0], embeddings, classes).write(bundle / FAMILIARITY)
    known = {"pictures": len(embeddings), "held_out": len(embeddings), "source": "folder"}
    edit(bundle, familiarity=known, files={FAMILIARITY: sha256(bundle / FAMILIARITY)})
    return bundle
