"""How far a bundle's numbers are from those of the model's own library, for docs/explanations.md.

`python -m lab.golden.exactness` prints it: it exports checkpoints of `make_checkpoints.py`, and the explaining graph
of each bundle runs on the pixels of the library.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image
from tqdm import tqdm

from app.images.preprocess import preprocess
from app.inference.engine import Outputs
from export.bundle import write_bundle
from export.image_spec import image_spec
from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import Checkpoint
from tests.golden.test_checkpoints import FOLDER, load
from tests.support.attention import pool_of
from tests.support.engines import engine_of

CASES = {  # those whose maps a library can give, one for each way that tokens are mixed and read
    "huggingface-vit": "ViT, transformers",
    "huggingface-beit": "BEiT, relative biases, transformers",
    "huggingface-dinov2-registers": "DINOv2 with registers, transformers",
    "huggingface-dinov3": "DINOv3, transformers",
    "huggingface-clip": "CLIP, transformers",
    "huggingface-siglip": "SigLIP, attention pool, transformers",
    "timm-eva02-tiny": "EVA-02, timm",
    "timm-dinov3": "DINOv3 with a head, timm",
    "timm-rope-mixed": "RoPE-mixed, timm",
    "timm-perception-encoder": "Perception Encoder, attention pool, timm",
}


def rows() -> Iterator[str]:
    for case, title in tqdm(CASES.items(), desc="bundles"):
        folder, expected = FOLDER / case, np.load(FOLDER / case / "expected.npz")
        checkpoint = load(folder)
        outputs = explained(checkpoint, expected)
        output = "logits" if "logits" in expected else "embedding"
        error = relative(outputs[output][0], expected[output])
        yield f"| {title} | {output} | {error:.0e} | {of_maps(outputs, checkpoint, expected)} |"
        if "beside_texts" in expected:
            checkpoint = load_checkpoint(folder, labels=str(folder / "labels.txt"))
            logits = explained(checkpoint, expected)["logits"][0]
            yield f"| the same beside labels | logits | {relative(logits, expected['beside_texts']):.0e} | |"


def explained(checkpoint: Checkpoint, expected: dict[str, np.ndarray]) -> Outputs:
    spec = image_spec(checkpoint.preprocessing)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "bundle"
        write_bundle(checkpoint, folder, replace=False)
        engine = engine_of(folder)
        return engine.run("explain", [preprocess(Image.fromarray(expected["picture"]), spec)[0]])


def relative(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference as a share of the largest number."""
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def of_maps(outputs: Outputs, checkpoint: Checkpoint, expected: dict[str, np.ndarray]) -> str:
    """The largest difference of a row of attention; empty where the library does not give that of its pool."""
    config = checkpoint.config
    if config.pools_by_attention and "pool" not in expected:
        return ""
    weights = pool_of(config.pool, len(config.prefix), expected)
    rows = np.einsum("t,lhts->lhs", weights, expected["attentions"])
    return f"{np.abs(outputs['attention'][0] - rows).max():.0e}"


def main() -> None:
    header = "| model and library | output | largest difference, relative | largest difference of a row of attention |"
    print(header, "| --- | --- | --- | --- |", *rows(), sep="\n")


if __name__ == "__main__":
    main()
