"""Which map to believe: every method on images whose object is known, and then covered patch by patch in its order.

The demo model, through the service's own code. Methods that need a backward pass run in PyTorch, on the same pixels.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from tqdm import tqdm

from app.bundle import load_bundle
from app.images.preprocess import preprocess
from app.inference.scoring import scores
from app.maps.faithfulness import Faithfulness
from app.maps.occlusion import filled, occluded
from app.maps.record import Maps
from app.settings import DEMO_BUNDLE
from export.reference import normalised
from lab.benchmarks.bundle_engine import open_engine
from lab.benchmarks.maps.methods import METHODS, Chunk, Explained, Values
from lab.benchmarks.record import Rows
from model.checkpoints.load import load_checkpoint
from model.demo.evaluate import patches_on_object
from model.shapes import Sample, held_out
from tests.support.records import make_prepared

IMAGES = 500
BATCH = 50
STEPS = 16  # of deletion and insertion
WEIGHTS = "model/demo/shapes.safetensors"


def measure() -> Rows:
    judged: dict[str, list[tuple[float, ...]]] = {name: [] for name in METHODS}
    for chunk in tqdm(_chunks(), total=IMAGES // BATCH, desc="judging maps", unit=f"x{BATCH}"):
        for name, method in METHODS.items():
            for sample, record, values in zip(chunk.samples, chunk.records, method.of(chunk), strict=True):
                if values is not None:
                    judged[name].append((*_on_object(values, sample, chunk), *_areas(values, record, chunk)))
    rows = []
    for name, figures in judged.items():
        hottest, mass, deletion, insertion = np.mean(figures, axis=0).tolist()
        rows.append(
            {
                "map": name,
                "more passes": METHODS[name].more,
                "images": len(figures),
                "hottest patch on the shape, %": round(100 * hottest, 1),
                "mass on the shape, %": round(100 * mass, 1),
                "deletion area": round(deletion, 3),
                "insertion area": round(insertion, 3),
            }
        )
    return rows


def _chunks() -> Iterator[Chunk]:
    bundle, checkpoint = load_bundle(DEMO_BUNDLE), load_checkpoint(WEIGHTS)
    manifest = bundle.manifest
    engine = open_engine(DEMO_BUNDLE)

    def score(images: npt.NDArray[np.uint8], label: int) -> npt.NDArray[np.float64]:
        return np.array([scores(row, manifest.score)[label] for row in engine.run("classify", images)["logits"]])

    every = list(held_out(IMAGES))
    for start in range(0, IMAGES, BATCH):
        samples = every[start : start + BATCH]
        pixels = np.stack([preprocess(Image.fromarray(s.pixels), manifest.image)[0] for s in samples])
        outputs = engine.run("explain", pixels)
        maps = [Maps.of({name: rows[i] for name, rows in outputs.items()}) for i in range(len(samples))]
        images = [make_prepared(pixels=each) for each in pixels]
        yield Chunk(
            samples=samples,
            records=[Explained(maps=each, image=image) for each, image in zip(maps, images, strict=True)],
            manifest=manifest,
            score=score,
            model=checkpoint.model,
            images=normalised(pixels, checkpoint),
            predicted=torch.from_numpy(outputs["logits"].argmax(1)),
        )


def _on_object(values: Values, sample: Sample, chunk: Chunk) -> tuple[float, float]:
    """Whether the hottest patch lies on the object, and the share of the positive values that do."""
    tokens = chunk.manifest.tokens
    mask = torch.from_numpy(sample.mask.copy())[None]
    on_object = patches_on_object(mask, tokens.patch).numpy().reshape(tokens.grid)
    positive = np.maximum(values, 0)
    mass = positive[on_object].sum() / positive.sum() if positive.any() else 0.0
    return float(on_object.flat[values.argmax()]), float(mass)


def _areas(values: Values, record: Explained, chunk: Chunk) -> tuple[float, float]:
    """Areas of deletion and insertion of the predicted class's score."""
    judged = Faithfulness.of(values, steps=STEPS, random_orders=0, seed=b"")
    patch = chunk.manifest.tokens.patch
    under = filled(record.image.pixels, "mean", patch=patch)
    shown = occluded(record.image.pixels, under, judged.covered, patch=patch)
    deletion, insertion = judged.areas(chunk.score(shown, int(record.maps.classes[0]))).tolist()
    return deletion, insertion
