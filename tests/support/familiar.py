"""A bundle that knows its images: the demo's, and embeddings of drawn images beside it."""

import json
import shutil
from pathlib import Path

import numpy as np

from app.bundle import FAMILIARITY, MANIFEST, sha256
from app.inference.familiarity import Familiarity
from app.settings import DEMO_BUNDLE


def familiar_bundle(folder: Path, embeddings: np.ndarray, classes: np.ndarray) -> Path:
    """A copy in `folder` of the demo bundle, which knows images with these embeddings (N, F) and classes (N,)."""
    bundle = Path(shutil.copytree(DEMO_BUNDLE, folder / "familiar"))
    Familiarity.learn(embeddings[:0], embeddings, classes).write(bundle / FAMILIARITY)
    manifest = json.loads((bundle / MANIFEST).read_text())
    manifest["familiarity"] = {"pictures": len(embeddings), "held_out": len(embeddings), "source": "folder"}
    manifest["files"][FAMILIARITY] = sha256(bundle / FAMILIARITY)
    (bundle / MANIFEST).write_text(json.dumps(manifest))
    return bundle
