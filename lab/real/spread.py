"""Whether the spread of a measured map is honest: a probe of the trained network on stamps pasted on photographs."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from app.bundle import Manifest, load_bundle
from app.images.preprocess import preprocess
from app.inference.engine import Engine
from app.inference.scoring import Scoring
from app.maps.measured import Masks, Measured, log_odds, measure
from app.maps.record import Maps
from lab.benchmarks.bundle_engine import open_engine
from lab.benchmarks.record import Rows
from lab.real.data import Data
from lab.real.pasted import NETWORK_SIDE, pasted, write
from lab.real.under_masks import under_masks

TRUE_PASSES = 1024
IMAGES = 12  # of those that the probe has not learned
TRIED_PASSES = (16, 64, 256)
Values = npt.NDArray[np.floating]


class Network(NamedTuple):
    engine: Engine
    manifest: Manifest

    def measured(self, pixels: npt.NDArray[np.uint8], label: int, *passes: int) -> list[Measured]:
        """The maps of so many passes each."""
        masks = Masks.of(self.manifest.tokens.grid, max(passes))
        logits = under_masks(self.engine, self.manifest, pixels, masks)["logits"]
        followed = log_odds(logits, Scoring.of(self.manifest), label)
        return [measure(followed[:n], Masks.of(self.manifest.tokens.grid, n)) for n in passes]


def measure_spread(data: Data) -> Rows:
    """How far maps of fewer passes are from those of TRUE_PASSES, beside what their spread says."""
    found: dict[int, list[tuple[float, float, float]]] = {passes: [] for passes in TRIED_PASSES}
    with _network(data) as network:
        for pixels, maps in _images(data, network, IMAGES):
            *tried, true = network.measured(pixels, int(maps.classes[0]), *TRIED_PASSES, TRUE_PASSES)
            for passes, one in zip(TRIED_PASSES, tried, strict=True):
                error = np.abs(one.values - true.values)
                within = (error <= 2 * one.spread).mean()
                found[passes].append((float(within), float((error**2).mean() ** 0.5), float(one.spread.mean())))
    return [
        {
            "passes": passes,
            "images": len(shares),
            "true number within two spreads, %": round(100 * float(np.mean([share for share, _, _ in shares])), 1),
            "error": round(float(np.mean([error for _, error, _ in shares])), 3),
            "spread": round(float(np.mean([said for _, _, said in shares])), 3),
        }
        for passes, shares in found.items()
    ]


def _images(data: Data, network: Network, count: int) -> Iterator[tuple[npt.NDArray[np.uint8], Maps]]:
    """So many that the probe has not learned, of mixed kinds."""
    images = [one.image for one in pasted(data) if one.part == "val"]
    for place in tqdm(np.random.default_rng(0).permutation(len(images))[:count], desc="measuring"):
        pixels = preprocess(images[place], network.manifest.image)[0]
        outputs = network.engine.run("explain", pixels[None])
        yield pixels, Maps.of({name: rows[0] for name, rows in outputs.items()})


@contextmanager
def _network(data: Data) -> Iterator[Network]:
    side = f"{NETWORK_SIDE},{NETWORK_SIDE}"
    facts = {"crop": "none", "resize_mode": "squash", "resize_size": side}
    with tempfile.TemporaryDirectory() as folder:
        images, probe, bundle = (Path(folder, name) for name in ("images", "probe.safetensors", "bundle"))
        write(data, images)
        options = [option for fact, value in facts.items() for option in ("--set", f"{fact}={value}")]
        of_fit = ["fit", data.network, "--image-size", str(NETWORK_SIDE), *options, "--images", images, "--out", probe]
        for arguments in (of_fit, ["--checkpoint", probe, "--out", bundle]):
            subprocess.run([sys.executable, "-m", "export", *map(str, arguments)], check=True)
        yield Network(open_engine(bundle), load_bundle(bundle).manifest)
