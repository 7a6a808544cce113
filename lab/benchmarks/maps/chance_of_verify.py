"""How often a random map beats random orders in both tests of `verify`, by their number."""

import numpy as np
import numpy.typing as npt
from PIL import Image
from tqdm import tqdm

from app.bundle import load_bundle
from app.images.preprocess import preprocess
from app.inference.scoring import Scoring
from app.maps.faithfulness import Faithfulness, chance
from app.maps.occlusion import filled, occluded
from app.settings import DEMO_BUNDLE
from lab.benchmarks.bundle_engine import open_engine
from lab.benchmarks.record import Rows
from model.shapes import held_out

IMAGES = 40
MAPS = 18  # random ones of each image; the others are the orders
STEPS = 8  # as verify takes by default
TRIED = (1, 3, 8, 12, 16)  # random orders


def measure() -> Rows:
    bundle, engine = load_bundle(DEMO_BUNDLE), open_engine(DEMO_BUNDLE)
    scoring, patch = Scoring.of(bundle.manifest), bundle.manifest.tokens.patch
    areas = []
    for number, sample in enumerate(tqdm(held_out(IMAGES), total=IMAGES, desc="covering")):
        pixels = preprocess(Image.fromarray(sample.pixels), bundle.manifest.image)[0]
        label = int(engine.run("classify", pixels[None])["logits"][0].argmax())
        under, rng = filled(pixels, "mean", patch=patch), np.random.default_rng(number)
        for _ in range(MAPS):
            values = rng.random(bundle.manifest.tokens.grid, dtype=np.float32)
            judged = Faithfulness.of(values, steps=STEPS, random_orders=1, seed=b"")
            logits = engine.run("classify", occluded(pixels, under, judged.covered, patch=patch))["logits"]
            curves = judged.curves(np.array([scoring.scores(row)[label] for row in logits]))
            areas.append([curve.area for curve in curves])
    by_image = np.array(areas).reshape(IMAGES, MAPS, 2)
    return [
        {
            "random orders": orders,
            "a random map beats all in both tests, %": round(100 * both, 1),
            "as verify says, %": round(100 * chance(orders), 1),
            "in deletion alone, %": round(100 * deletion, 1),
        }
        for orders in TRIED
        for both, deletion in [_beaten(by_image, orders)]
    ]


def _beaten(areas: npt.NDArray[np.float64], orders: int) -> tuple[float, float]:
    """How often each map (images, maps, 2) beats `orders` of the others, over all ways to draw these: its deletion
    area is below, and its insertion area above, their deletion areas, which stand for both.
    """
    deletion, insertion = areas[..., 0], areas[..., 1]
    others = deletion[:, None, :]
    above = others > deletion[..., None]
    between = above & (others < insertion[..., None])  # a map is not above itself
    often_between, often_above = (
        float(np.mean([_share(int(count), orders) for count in found.sum(-1).flat])) for found in (between, above)
    )
    return often_between, often_above


def _share(good: int, orders: int) -> float:
    """Of all ways to draw so many of the other maps: those that draw only good ones."""
    return float(np.prod([(good - i) / (MAPS - 1 - i) for i in range(orders)])) if good >= orders else 0.0
