"""From a folder of images to a served model: `python -m export fit`, export, and the service's own answers."""

import csv
from pathlib import Path

import numpy as np
from PIL import Image

from app.bundle import load_bundle
from export.command import main
from model.shapes import LABELS, draw

COUNTS = {"arrow": 60, "circle": 60, "heart": 40, "star": 40}


def write_photos(folder: Path) -> None:
    """200 images of several sizes and types in 4 folders, as a person has them."""
    for label, count in COUNTS.items():
        (folder / label).mkdir(parents=True)
        for number in range(count):
            rng = np.random.default_rng([LABELS.index(label), number])
            size = (int(rng.integers(90, 200)), int(rng.integers(90, 200)))
            image = Image.fromarray(draw(rng, size=size, label=LABELS.index(label)).pixels)
            image.save(folder / label / f"{number}.{('jpg', 'png', 'webp')[number % 3]}")


def test_the_served_model_is_as_often_right_as_the_report_says(tmp_path, serve):
    photos, learned, bundle = (tmp_path / name for name in ("photos", "mine.safetensors", "mine"))
    write_photos(photos)
    recipe = ["--recipe", "read=cls"]
    main(["fit", "model/demo/shapes.safetensors", "--images", str(photos), "--out", str(learned), *recipe])
    main(["--checkpoint", str(learned), "--out", str(bundle)])
    manifest = load_bundle(bundle).manifest
    assert (manifest.labels, manifest.pool, manifest.recipe["method"]) == (tuple(COUNTS), "cls", "probe")
    report, right = learned.with_suffix(".report"), []
    with serve(bundle=bundle) as client, (report / "split.csv").open() as text:
        for row in csv.DictReader(text):
            if row["split"] == "val":
                answer = client.post("/classify", content=(report / row["file"]).read_bytes()).json()
                right.append(answer["results"][0]["predictions"][0]["label"] == row["label"])
    assert len(right) == 20
    assert sum(right) / 20 == manifest.figures["top1_accuracy"] >= 0.9
