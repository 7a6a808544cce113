"""`python -m lab.golden.make_pictures`: writes the pictures of the docs.

The last is the page in a browser. It needs Chromium and the font of the current picture
(`apt-get install chromium fonts-liberation`).
"""

import shutil
from io import BytesIO
from pathlib import Path

import numpy as np
from fastapi.testclient import TestClient
from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import sync_playwright

from app.main import create_app
from model.shapes import LABELS, draw
from tests.browser.stage import settle
from tests.support.server import running

DOCS = Path("docs")
SHEET_SCENES = (("star", 21), ("heart", 8), ("arrow", 14))
SIDE, GAP, TITLE = 384, 12, 56
MAPS = {"class token": {}, "rollout": {"method": "rollout"}, "evidence": {"method": "evidence"}}  # and their parameters


def main() -> None:
    write_sheet()
    write_page()


def write_sheet() -> None:
    """docs/star.jpg and docs/heatmap.png: images beside their maps."""
    rows = []
    with TestClient(create_app()) as client:
        for label, seed in SHEET_SCENES:
            out = BytesIO()
            scene = draw(np.random.default_rng(seed), size=(SIDE, SIDE), label=LABELS.index(label))
            Image.fromarray(scene.pixels).save(out, "JPEG", quality=90)
            if label == "star":
                (DOCS / "star.jpg").write_bytes(out.getvalue())
            answer = client.post("/classify", content=out.getvalue()).json()["results"][0]
            maps = [client.get(answer["attention"], params=params).content for params in MAPS.values()]
            rows.append([Image.open(BytesIO(data)).convert("RGB") for data in (out.getvalue(), *maps)])
    sheet = Image.new("RGB", (len(rows[0]) * (SIDE + GAP) - GAP, TITLE + len(rows) * (SIDE + GAP) - GAP), "white")
    titles, font = ImageDraw.Draw(sheet), ImageFont.load_default(32)
    for x, title in enumerate(("image", *MAPS)):
        titles.text((x * (SIDE + GAP) + SIDE // 2, TITLE // 2), title, "black", font, anchor="mm")
    for y, row in enumerate(rows):
        for x, image in enumerate(row):
            sheet.paste(image, (x * (SIDE + GAP), TITLE + y * (SIDE + GAP)))
    half = sheet.resize((sheet.width // 2, sheet.height // 2), Image.Resampling.LANCZOS)
    half.save(DOCS / "heatmap.png", optimize=True)


def write_page() -> None:
    """docs/page.jpg"""
    with running() as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900}, device_scale_factor=1.25)
        page.goto(server.url)
        for place, sample in enumerate(("heart", "bolt", "crescent", "star")):
            page.click(f"[data-sample={sample}]")
            page.locator(".queue .named").nth(place).wait_for()
        page.check("[value=evidence]")
        page.fill("[name=against]", "bolt")
        settle(page)
        page.keyboard.press("Escape")
        page.mouse.move(0, 0)
        page.evaluate("scrollTo(0, 0)")
        picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
        browser.close()
    picture.save(DOCS / "page.jpg", quality=78, optimize=True, progressive=True)


if __name__ == "__main__":
    main()
