"""Which map to believe: every method on pictures whose object is known, and covered patch by patch in its order.

The demo model on held-out pictures, through the service's own preprocessing, graphs, choice of maps and trials.
"""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from tqdm import tqdm

from app.bundle import Manifest, load_bundle
from app.images.preprocess import preprocess
from app.inference.cpu import OnnxEngine
from app.inference.labels import scores
from app.machine import allowed_cores
from app.maps.choice import Choice, choose
from app.maps.faithfulness import Trial, cover, filled
from app.maps.record import Maps, Record
from app.settings import DEMO_BUNDLE
from model.demo.evaluate import patches_on_object
from model.demo.shapes import Sample, held_out
from tests.support.records import make_record

PICTURES = 1000
BATCH = 50
STEPS = 16
Values = npt.NDArray[np.float32]  # (rows, columns)


def _last_layer(record: Record, manifest: Manifest, picture: Sample) -> Values:
    return choose(record, manifest, Choice(method="class_token")).values


def _rollout(record: Record, manifest: Manifest, picture: Sample) -> Values:
    return choose(record, manifest, Choice(method="rollout")).values


def _evidence_of_predicted(record: Record, manifest: Manifest, picture: Sample) -> Values:
    return choose(record, manifest, Choice(method="evidence")).values


def _evidence_of_true(record: Record, manifest: Manifest, picture: Sample) -> Values | None:
    """None where the true label is not among the likely ones whose evidence is kept."""
    if picture.label not in record.maps.classes:
        return None
    return choose(record, manifest, Choice(method="evidence", label=str(picture.label))).values


def _random(record: Record, manifest: Manifest, picture: Sample) -> Values:
    return np.random.default_rng(int(record.pixels.sum())).random(manifest.tokens.grid, dtype=np.float32)


METHODS: dict[str, Callable[[Record, Manifest, Sample], Values | None]] = {
    "last layer, mean over heads": _last_layer,
    "rollout": _rollout,
    "evidence of the predicted label": _evidence_of_predicted,
    "evidence of the true label": _evidence_of_true,
    "random": _random,
}


def measure() -> list[dict[str, str | float]]:
    bundle = load_bundle(DEMO_BUNDLE)
    manifest = bundle.manifest
    engine = OnnxEngine(folder=bundle.folder, image_size=manifest.image.size, threads=allowed_cores())
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in METHODS}
    for picture, record in tqdm(_explained(engine, manifest), total=PICTURES, desc="judging maps", unit="picture"):
        mask = torch.from_numpy(picture.mask.copy())[None]
        on_object = patches_on_object(mask, manifest.tokens.patch).numpy().reshape(manifest.tokens.grid)
        for name, method in METHODS.items():
            values = method(record, manifest, picture)
            if values is not None:
                found[name].append((*_on_object(values, on_object), *_areas(values, record, engine, manifest)))
    rows = []
    for name, figures in found.items():
        hottest, mass, deletion, insertion = np.mean(figures, axis=0).tolist()
        rows.append(
            {
                "map": name,
                "pictures": len(figures),
                "hottest patch on the shape, %": round(100 * hottest, 1),
                "mass on the shape, %": round(100 * mass, 1),
                "deletion area": round(deletion, 3),
                "insertion area": round(insertion, 3),
            }
        )
    return rows


def _explained(engine: OnnxEngine, manifest: Manifest) -> Iterator[tuple[Sample, Record]]:
    pictures = list(held_out(PICTURES))
    for start in range(0, PICTURES, BATCH):
        chunk = pictures[start : start + BATCH]
        pixels = [preprocess(Image.fromarray(p.pixels), manifest.image.framing)[0] for p in chunk]
        outputs = engine.run("explain", np.stack(pixels))
        for i, picture in enumerate(chunk):
            maps = Maps.of({name: rows[i] for name, rows in outputs.items()})
            yield picture, make_record(maps=maps, pixels=pixels[i])


def _on_object(values: Values, on_object: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Whether the hottest patch lies on the object, and the share of what is positive that does."""
    positive = np.maximum(values, 0)
    return float(on_object.flat[values.argmax()]), float(positive[on_object].sum() / positive.sum())


def _areas(values: Values, record: Record, engine: OnnxEngine, manifest: Manifest) -> tuple[float, float]:
    """Areas of deletion and insertion of the predicted class's score."""
    trial = Trial.of(values, steps=STEPS, random_orders=0, seed="")
    patch = manifest.tokens.patch
    under = filled(record.pixels, "mean", patch=patch)
    logits = engine.run("classify", cover(record.pixels, under, trial.covered, patch=patch))["logits"]
    predicted = logits[0].argmax()
    deletion, insertion = trial.curves(np.array([scores(row, manifest.score)[predicted] for row in logits]))
    return deletion.area, insertion.area
