"""What the page takes in a browser: seconds from the label to the first map on a slow line, and frames a second while
patches are asked.

Chromium without a screen or a graphics card, on the cores of the server. The line is Chromium's own emulation.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, FilePayload, Page

from export.bundle import write_bundle
from lab.benchmarks.random_model import random_checkpoint
from lab.benchmarks.record import Row, Rows
from lab.benchmarks.rounds import quartiles
from tests.support.chromium import chromium
from tests.support.pictures import jpeg
from tests.support.server import PATIENT, running

LINE = {"offline": False, "latency": 40, "downloadThroughput": 50_000, "uploadThroughput": 50_000}
ROUNDS = 5
IMAGES = 4
FRAMES = """async (seconds) => {
    const tile = document.querySelector("#tiles button");
    const { left, top, width, height } = tile.getBoundingClientRect();
    const start = performance.now();
    let frames = 0;
    for (; performance.now() < start + 1000 * seconds; frames++) {
        const [x, y] = [Math.sin(frames / 9), Math.cos(frames / 7)].map((place) => 0.5 + 0.45 * place);
        tile.dispatchEvent(new PointerEvent("pointermove", { clientX: left + x * width, clientY: top + y * height }));
        await new Promise(requestAnimationFrame);
    }
    return (1000 * frames) / (performance.now() - start);
}"""
WATCH = """() => {
    window.waited = new Promise((give) => {
        let label;
        new MutationObserver(() => {
            if (document.querySelector(".queue .named")) label ??= performance.now();
            const drawn = document.getElementById("stage").ariaBusy === "false";
            if (label && drawn) give((performance.now() - label) / 1000);
        }).observe(document.body, { attributes: true, childList: true, subtree: true });
    });
}"""


def measure() -> Rows:
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        return [
            row("the demo", None, browser),
            row("ViT-S/16, 224 pixels", exported(Path(folder), 224), browser),
            row("the same, 2 layers, 592 pixels", exported(Path(folder), 592, depth=2), browser),
        ]


def row(name: str, bundle: Path | None, browser: Browser) -> Row:
    with running(*([bundle] if bundle else []), **PATIENT) as server:
        first = [until_map(browser, server.url) for _ in range(ROUNDS)]
        grid, frames = asking(browser, server.url)
    return {
        "model": name,
        "patches": grid,
        "label to first map at 50 kB/s, s": quartiles(first, 2),
        f"frames/s, a patch asked in {IMAGES} images": round(frames),
    }


def exported(folder: Path, side: int, **changes: int) -> Path:
    bundle = folder / str(side)
    write_bundle(random_checkpoint("S/16", image_size=(side, side), **changes), bundle, replace=False)
    return bundle


@contextmanager
def opened(browser: Browser, url: str) -> Iterator[Page]:
    with browser.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(180_000)
        page.goto(url)
        page.locator("#served b").wait_for()
        yield page


def until_map(browser: Browser, url: str) -> float:
    """Seconds from the label until a map is drawn."""
    with opened(browser, url) as page:
        page.wait_for_load_state("networkidle")
        page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", LINE)
        page.evaluate(WATCH)
        add(page, 1)
        return float(page.evaluate("waited"))


def asking(browser: Browser, url: str) -> tuple[str, float]:
    """The grid of patches, and frames a second while the pointer moves over one of the images."""
    with opened(browser, url) as page:
        add(page, IMAGES)
        page.get_by_role("tab", name="Compare", exact=True).click()
        tiles = page.locator("#tiles canvas[width]")  # those that are drawn
        tiles.nth(IMAGES - 1).wait_for()
        page.wait_for_load_state("networkidle")
        grid = tiles.first.evaluate("({ width, height }) => `${height}×${width}`")
        return grid, median(page.evaluate(FRAMES, 2) for _ in range(ROUNDS))


def add(page: Page, count: int) -> None:
    files: list[FilePayload] = [{"name": f"{i}.jpg", "mimeType": "image/jpeg", "buffer": jpeg(i)} for i in range(count)]
    page.set_input_files("#file", files)
