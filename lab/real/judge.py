"""Which map to believe, by `python -m export judge`: on the demo's shapes, on photographs with stamps on them and on
textiles with small defects. What the answer depends on is known for all three.
"""

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from app.maps.judgement import FILLS, JudgedMap
from app.settings import DEMO_BUNDLE
from export.bundle import write_bundle
from export.fit.methods import recipe
from export.fit.report.judged import Judged as Answers
from export.fit.run import run as fit
from export.judge.run import run
from lab.benchmarks.record import Row, Rows
from lab.real.data import Data
from lab.real.defect import defect
from lab.real.pasted import NETWORK_SIDE, pasted, write
from model.checkpoints import load_checkpoint
from model.shapes import held_out

IMAGES = {"shapes": 40, "photographs": 40, "textiles": 16}


class ToJudge(NamedTuple):
    bundle: Path
    images: Path
    masks: Path


def measure(data: Data) -> Rows:
    rows: Rows = []
    for name, make in {"shapes": _shapes, "photographs": _photographs, "textiles": _textiles}.items():
        with tempfile.TemporaryDirectory() as place:
            to_judge = make(data, Path(place))
            judgement = run(*to_judge, limit=IMAGES[name]).judgement
            rows += [_row(name, judgement.images, of_map) for of_map in judgement.maps]
    return rows


def _row(name: str, images: int, judged: JudgedMap) -> Row:
    assert judged.on_object
    return {
        "images": f"{images} {name}",
        "map": judged.title,
        "more passes": judged.passes,
        "insertion less deletion": f"{judged.faithfulness:.2f}",
        "behind the first": f"{judged.behind:.2f} ± {judged.error:.2f}" if judged.behind else "",
        **{
            f"{fill}: deletion / insertion": f"{judged.deletion[fill]:.3f} / {judged.insertion[fill]:.3f}"
            for fill in FILLS
        },
        "hottest patch on the object, %": round(100 * judged.on_object.hottest, 1),
        "of the five hottest, %": round(100 * judged.on_object.five_hottest, 1),
        "one of the five, %": round(100 * judged.on_object.found, 1),
    }


def _shapes(_: Data, place: Path) -> ToJudge:
    """The demo bundle and its held-out images."""
    shutil.copytree(DEMO_BUNDLE, place / "bundle")
    found = [(Image.fromarray(sample.pixels), Image.fromarray(sample.mask)) for sample in held_out(IMAGES["shapes"])]
    return _written(place, found)


def _photographs(data: Data, place: Path) -> ToJudge:
    """The trained network with a probe, on stamps that it has not learned."""
    write(data, place / "all")
    side = f"{NETWORK_SIDE},{NETWORK_SIDE}"
    _fit(data.network, place / "all", place, image_size=side, crop="none", resize_mode="squash", resize_size=side)
    return _written(place, [(one.image, one.thing) for one in pasted(data) if one.part == "val"])


def _textiles(data: Data, place: Path) -> ToJudge:
    """The same with textiles: those with a defect that are named so."""
    judged = _fit(data.network, data.textiles["train"][0].parents[2], place)
    local = judged.labels.index("local")
    named = np.flatnonzero((judged.right == local) & (judged.answers == local))
    return _written(place, [(image := Image.open(judged.files[row]), defect(image)) for row in named])


def _fit(network: Path, images: Path, place: Path, **facts: str) -> Answers:
    """Learn a probe, and write its bundle; what it says of the held-out images."""
    out = place / "probe.safetensors"
    source = load_checkpoint(network, overrides={"num_classes": "0", **facts})
    report = fit(source, images, out, recipe=recipe("probe", [], seed=0), seed=0, strict=True, replace=False)
    write_bundle(load_checkpoint(out), place / "bundle", replace=False)
    assert report.judged
    return report.judged


def _written(place: Path, found: list[tuple[Image.Image, Image.Image]]) -> ToJudge:
    """Images and their masks."""
    images, masks = place / "images", place / "masks"
    for folder in (images, masks):
        folder.mkdir()
    for number, (image, mask) in enumerate(found):
        image.save(images / f"{number:03}.png")
        mask.save(masks / f"{number:03}.png")
    return ToJudge(place / "bundle", images, masks)
