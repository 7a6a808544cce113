"""Writes docs/star.jpg and docs/heatmap.png: `PYTHONPATH=. .venv/bin/python tests/golden/make_readme_pictures.py`."""

from io import BytesIO
from pathlib import Path

import numpy as np
from fastapi.testclient import TestClient
from PIL import Image

from app.main import create_app
from model.shapes import LABELS, draw

DOCS = Path("docs")
SIDE = 384
GAP = 12
SCENES = (("star", 21), ("heart", 8), ("arrow", 14))
MAPS: tuple[dict[str, str], ...] = ({}, {"method": "rollout"}, {"method": "evidence"})


def main() -> None:
    DOCS.mkdir(exist_ok=True)
    rows = []
    with TestClient(create_app()) as client:
        for label, seed in SCENES:
            picture = draw(np.random.default_rng(seed), size=(SIDE, SIDE), label=LABELS.index(label))
            out = BytesIO()
            Image.fromarray(picture.pixels).save(out, "JPEG", quality=90)
            if label == "star":
                (DOCS / "star.jpg").write_bytes(out.getvalue())
            answer = client.post("/classify", content=out.getvalue()).json()["results"][0]
            maps = [client.get(answer["attention"], params=params).content for params in MAPS]
            rows.append([Image.open(BytesIO(data)).convert("RGB") for data in (out.getvalue(), *maps)])
    sheet = Image.new("RGB", (len(rows[0]) * (SIDE + GAP) - GAP, len(rows) * (SIDE + GAP) - GAP), "white")
    for y, row in enumerate(rows):
        for x, image in enumerate(row):
            sheet.paste(image, (x * (SIDE + GAP), y * (SIDE + GAP)))
    sheet.resize((sheet.width // 2, sheet.height // 2), Image.Resampling.LANCZOS).save(
        DOCS / "heatmap.png", optimize=True
    )


if __name__ == "__main__":
    main()
