"""How far the images of a batch change each other's answers: `--precision int8` rounds on the range of the whole batch.

Each of the demo's held-out images is classified alone and in a batch of 8 with seven others. No time is measured, so
the figures do not depend on the machine's load.
"""

import tempfile
from pathlib import Path

import numpy as np
import onnx
from tqdm import tqdm

from app.bundle import Precision
from app.inference.labels import scores
from export.graphs import ClassifyGraph
from export.image_spec import image_spec
from export.images import DrawnImages
from export.precision import model_for
from export.trace import trace
from model.checkpoints import load_checkpoint
from model.demo.__main__ import WEIGHTS
from tests.benchmarks.precision import Lean, session

PRECISIONS: tuple[Precision, ...] = ("fp32", "int8")
BATCH = 8


def measure() -> list[dict[str, str | float]]:
    checkpoint = load_checkpoint(WEIGHTS)
    images = DrawnImages(image_spec(checkpoint.preprocessing), labels=checkpoint.labels)
    pixels = np.stack([of_image for of_image, _ in tqdm(images.judged(), total=images.judged_images, desc="drawing")])
    rows: list[dict[str, str | float]] = []
    for precision in PRECISIONS:
        model = model_for(checkpoint, precision, images.ranges)
        graph = ClassifyGraph(model, checkpoint.preprocessing, precision=precision)
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / "lean.onnx"
            onnx.save(trace(graph), path)
            engine = Lean(session(path))
        alone, together = (probabilities(engine, pixels, batch=batch) for batch in (1, BATCH))
        apart = np.abs(alone - together).max(axis=1)
        rows.append(
            {
                "demo model": precision,
                "images": len(pixels),
                "the label is the same": f"{np.mean(alone.argmax(1) == together.argmax(1)):.2%}",
                "probability difference, mean": f"{apart.mean():.1g}",
                "99 % of the images are below": f"{np.quantile(apart, 0.99):.1g}",
                "largest": f"{apart.max():.1g}",
            }
        )
    return rows


def probabilities(engine: Lean, pixels: np.ndarray, *, batch: int) -> np.ndarray:
    """(images, classes)."""
    starts = range(0, len(pixels), batch)
    logits = [engine.run("classify", pixels[start : start + batch])["logits"] for start in starts]
    return np.stack([scores(of_image, "softmax") for of_image in np.concatenate(logits)])
