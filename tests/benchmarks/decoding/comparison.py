"""JPEG to the network's pixels: the speed of other libraries and of Pillow's draft mode, and how their results differ.

Differences are those of the pixels and of the demo model's answers on large drawn images, against Pillow as served.
"""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from app.bundle import load_bundle
from app.inference.device import open_model
from app.inference.scoring import scores
from app.settings import DEMO_BUNDLE, Settings
from model.shapes import draw
from tests.benchmarks.pictures import jpeg

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venv-bench" / "decoding" / "bin" / "python"
CAMERAS = {"12 MP": (4000, 3000), "48 MP": (8000, 6000)}
COMPARED, COMPARED_SIZE = 200, (900, 700)
BASE = "Pillow, as served"


def measure() -> list[dict[str, str | float]]:
    if not PYTHON.exists():
        raise SystemExit("`make bench` installs the other libraries first")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_images(folder)
        command = [str(PYTHON), "-m", "tests.benchmarks.decoding.ways", str(folder)]
        times: dict[str, dict[str, float]] = json.loads(subprocess.check_output(command, cwd=ROOT))
        pixels = {name: np.load(folder / f"{name}.npy") for name in times}
    answers = {name: probabilities(found) for name, found in pixels.items()}
    return [
        {
            "decoder": name,
            **{f"{image}, ms": round(ms, 1) for image, ms in sorted(of_way.items(), key=lambda item: len(item[0]))},
            "pixel difference, mean": round(np.abs(pixels[name].astype(int) - pixels[BASE]).mean(), 2),
            "largest": int(np.abs(pixels[name].astype(int) - pixels[BASE]).max()),
            "same label": f"{(answers[name].argmax(1) == answers[BASE].argmax(1)).mean():.1%}",
            "probability difference, largest": round(np.abs(answers[name] - answers[BASE]).max(), 3),
        }
        for name, of_way in times.items()
    ]


def write_images(folder: Path) -> None:
    (folder / "500 x 334.jpg").write_bytes(jpeg())
    with Image.open(folder / "500 x 334.jpg") as small:
        for name, size in CAMERAS.items():
            small.resize(size, Image.Resampling.BICUBIC).save(folder / f"{name}.jpg", quality=85)
    (folder / "compared").mkdir()
    for number in range(COMPARED):
        image = Image.fromarray(draw(np.random.default_rng(number), size=COMPARED_SIZE).pixels)
        image.save(folder / "compared" / f"{number:03}.jpg", quality=88)


def probabilities(pixels: np.ndarray) -> np.ndarray:
    bundle = load_bundle(DEMO_BUNDLE)
    engine = open_model(settings=Settings(device="cpu"), bundle=bundle).engine
    return np.stack([scores(logits, bundle.manifest.score) for logits in engine.run("classify", pixels)["logits"]])
