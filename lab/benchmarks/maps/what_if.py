"""Does a patch's evidence say what happens without it? The top of each map is covered, and random sets of as many."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from PIL import Image
from tqdm import tqdm

from app.bundle import Manifest, load_bundle
from app.images.preprocess import preprocess
from app.inference.engine import Engine
from app.maps.attention import choose
from app.maps.choice import Choice
from app.maps.faithfulness import beside_random_sets, share_as_large, top
from app.maps.occlusion import Fill, filled, occluded
from app.maps.record import Maps
from app.settings import DEMO_BUNDLE
from lab.benchmarks.bundle_engine import open_engine
from lab.benchmarks.record import Rows
from model.shapes import Sample, held_out

IMAGES = 500
SHARE = 0.1
RANDOM_SETS = 20
FILLS: tuple[Fill, ...] = ("mean", "blur")
MAPS = {
    "last layer, mean over heads": Choice(method="class_token"),
    "rollout": Choice(method="rollout"),
    "evidence of the predicted label": Choice(method="evidence"),
    "positive evidence of the predicted label": Choice(method="positive_evidence"),
}
RANDOM = f"{RANDOM_SETS} random sets"

Numbers = tuple[float, float, bool, float]  # evidence, effect, whether the label is another, share of sets as large


def measure() -> Rows:
    bundle = load_bundle(DEMO_BUNDLE)
    engine = open_engine(DEMO_BUNDLE)
    found: dict[tuple[Fill, str], list[Numbers]] = defaultdict(list)
    for number, sample in enumerate(tqdm(held_out(IMAGES), total=IMAGES, desc="covering")):
        for fill, name, numbers in _covered(sample, engine, bundle.manifest, seed=str(number).encode()):
            found[fill, name].append(numbers)
    rows = []
    for (fill, name), sets in found.items():
        evidence, effect, relabelled, as_large = np.array(sets, np.float64).T
        rows.append(
            {
                "top 10 % of": name,
                "fill": fill,
                "images": IMAGES,
                "evidence, mean": round(evidence.mean(), 2),
                "effect, mean": round(effect.mean(), 2),
                "correlation of both": round(np.corrcoef(evidence, effect)[0, 1], 2),
                "another label, %": round(100 * relabelled.mean(), 1),
                "random sets with as much effect, %": "" if name == RANDOM else round(100 * as_large.mean(), 1),
            }
        )
    return rows


def _covered(sample: Sample, engine: Engine, manifest: Manifest, *, seed: bytes) -> Iterator[tuple[Fill, str, Numbers]]:
    """Of one image and the logit of its predicted label: each top of a map and each random set, with each fill."""
    pixels = preprocess(Image.fromarray(sample.pixels), manifest.image)[0]
    outputs = engine.run("explain", pixels[None])
    maps = Maps.of({name: rows[0] for name, rows in outputs.items()})
    evidence = choose(maps, manifest, MAPS["evidence of the predicted label"]).values.ravel()
    tops = [top(choose(maps, manifest, choice).values, SHARE) for choice in MAPS.values()]
    nothing, _, *random = beside_random_sets(tops[0], RANDOM_SETS, seed=seed)
    sets = np.stack([nothing, *tops, *random])
    label, patch = maps.classes[0], manifest.tokens.patch
    for fill in FILLS:
        shown = occluded(pixels, filled(pixels, fill, patch=patch), sets, patch=patch)
        logits = engine.run("classify", shown)["logits"]
        effects = (logits[0, label] - logits[:, label]).astype(np.float64)
        names = [*MAPS, *[RANDOM] * RANDOM_SETS]
        for i, name in enumerate(names, start=1):
            promised, effect = float(evidence[sets[i]].sum()), float(effects[i])
            as_large = share_as_large(effect, effects[-RANDOM_SETS:])
            yield fill, name, (promised, effect, logits[i].argmax() != label, as_large)
