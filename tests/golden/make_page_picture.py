"""Writes docs/page.jpg, the page in a browser: `PYTHONPATH=. .venv/bin/python tests/golden/make_page_picture.py`.

Needs Chromium and the font of the current picture (`apt-get install chromium fonts-liberation`).
"""

import shutil
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.benchmarks.server import running
from tests.browser.stage import settle


def main() -> None:
    with running() as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900}, device_scale_factor=1.25)
        page.goto(server.url)
        for place, sample in enumerate(("heart", "bolt", "crescent", "star")):
            page.click(f"[data-sample={sample}]")
            page.locator(".queue .named").nth(place).wait_for()
        page.check("[value=evidence]")
        page.select_option("[name=against]", label="bolt")
        settle(page)
        page.evaluate("scrollTo(0, 0)")
        picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
        browser.close()
    picture.save(Path("docs/page.jpg"), quality=82, optimize=True, progressive=True)


if __name__ == "__main__":
    main()
