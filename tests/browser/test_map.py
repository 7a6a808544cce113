"""The map and what changes it: controls, keys, the wall, the pointer, downloads."""

import json
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.browser.stage import address, asked, settle, shown


def select(name: str, value: str):
    return lambda page: page.select_option(f"#controls [name={name}]", value)


def check(name: str):
    return lambda page: page.locator(f"#controls [name={name}]").set_checked(name != "overlay")


def slide(where: str, value: str):
    return lambda page: page.locator(where).fill(value)


def press(where: str, name: str):
    return lambda page: page.locator(where).get_by_role("button", name=name, exact=True).click()


def method(value: str):
    return lambda page: page.check(f"[name=method][value={value}]")


CONTROLS = [
    (slide("#layer input", "2"), {"layer": "2"}),
    (press("#layer", "mean"), {"layer": "mean"}),
    (slide("#head input", "1"), {"head": "1"}),
    (press("#head", "max"), {"head": "max"}),
    (press("#head", "min"), {"head": "min"}),
    (slide("[name=alpha]", "0.9"), {"alpha": "0.9"}),
    (select("colormap", "inferno"), {"colormap": "inferno"}),
    (select("scale", "percentile"), {"scale": "percentile"}),
    (select("scale", "shared"), {"scale": "shared"}),
    (select("scale", "absolute"), {"scale": "absolute"}),
    (select("interpolation", "nearest"), {"interpolation": "nearest"}),
    (select("interpolation", "bicubic"), {"interpolation": "bicubic"}),
    (select("threshold", "0.5"), {"threshold": "0.5"}),
    (check("overlay"), {"overlay": "false"}),
    (check("colorbar"), {"colorbar": "true"}),
    (method("rollout"), {"method": "rollout"}),
    (method("evidence"), {"method": "evidence"}),
    (method("positive_evidence"), {"method": "positive_evidence"}),
]


def test_every_control_asks_for_what_it_says_and_shows_it(looking):
    page = looking
    pictures = {shown(page)}
    for change, parameters in CONTROLS:
        before = asked(page)
        change(page)
        assert {name: value for name, value in asked(page).items() if before.get(name) != value} == parameters
        picture = shown(page)
        assert picture not in pictures, parameters
        pictures.add(picture)


def test_the_original_beside_the_map(looking):
    page = looking
    height = page.locator("#stage").bounding_box()["height"]
    page.check("[name=beside]")
    page.locator("#original[src]").wait_for()
    assert page.evaluate("original.decode().then(() => original.naturalWidth === map.naturalWidth)")
    assert page.locator("#stage").bounding_box()["height"] == height  # nothing jumps
    page.uncheck("[name=beside]")
    assert page.locator("#original-pane").is_hidden()


def test_only_the_newest_of_many_maps_is_shown(looking):
    """The response for one layer is held back until the response for the next layer has arrived."""
    page = looking
    held = []
    page.route(lambda url: "layer=1" in url, lambda route: held.append(route))
    with page.expect_request(lambda request: "layer=1" in request.url):
        page.locator("#layer input").fill("1")
    page.locator("#layer input").fill("2")
    newest = shown(page)
    for route in held:
        route.continue_()
    page.wait_for_timeout(200)
    assert held
    assert shown(page) == newest
    assert "layer 2" in page.locator("#recipe").inner_text()


def test_arrows_step_through_layers_and_heads(looking):
    page = looking
    for key, expected in [
        ("ArrowUp", ("4", "mean")),  # from the last of six layers
        ("ArrowRight", ("4", "0")),
        ("ArrowRight", ("4", "1")),
        ("ArrowDown", ("5", "1")),
        ("ArrowDown", ("5", "1")),  # there is none below
        ("ArrowLeft", ("5", "0")),
    ]:
        page.keyboard.press(key)
        assert (asked(page).get("layer", "5"), asked(page)["head"]) == expected
    assert page.locator("#layer output").inner_text() == "5"
    page.keyboard.press("2")
    assert asked(page)["method"] == "rollout"
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()


def test_arrows_in_a_control_stay_there(looking):
    page = looking
    page.focus("[name=alpha]")
    page.keyboard.press("ArrowRight")
    assert asked(page)["alpha"] == "0.65"
    assert "layer" not in asked(page)


def test_the_pointer_reads_the_numbers_of_the_json(looking):
    page = looking
    page.check("[name=colorbar]")  # the colour bar makes the drawing wider than the image
    settle(page)
    numbers = page.request.get(page.url.split("#")[0].rstrip("/") + address(page)).json()
    page.locator("#map").scroll_into_view_if_needed()
    frame = page.locator("#map").bounding_box()
    width, height = page.evaluate("[map.naturalWidth, map.naturalHeight]")
    scale = min(frame["width"] / width, frame["height"] / height)
    drawn = scale * height / numbers["image"][1]  # CSS pixels per pixel of the original
    left = frame["x"] + (frame["width"] - width * scale) / 2
    top = frame["y"] + (frame["height"] - height * scale) / 2
    x0, y0, x1, y1 = numbers["crop_box"]
    rows, columns = numbers["grid"]
    for row, column in [(0, 0), (3, 5), (7, 7), (6, 1)]:
        x = x0 + (x1 - x0) * (column + 0.5) / columns
        y = y0 + (y1 - y0) * (row + 0.5) / rows
        page.mouse.move(left + x * drawn, top + y * drawn)
        value = numbers["values"][row * columns + column]
        text = page.locator("#readout").inner_text()
        assert text.startswith(f"Row {row}, column {column}: {significant(value)}, ")
        share = 100 * value / sum(numbers["values"])
        assert float(text.split(", ")[2].split(" %")[0]) == pytest.approx(share, abs=0.06)
        box = page.locator("#patch").bounding_box()
        assert box["x"] + box["width"] / 2 == pytest.approx(left + x * drawn, abs=1)
        assert box["y"] + box["height"] / 2 == pytest.approx(top + y * drawn, abs=1)
    page.mouse.move(left + (x0 / 2) * drawn, top + 10)  # outside the part that the network sees
    assert page.locator("#patch").is_hidden()
    assert page.locator("#readout").inner_text().startswith("8 × 8 patches")


def significant(value: float) -> str:
    """Three significant digits, in the format of the page."""
    if abs(value) < 1e-4:
        mantissa, exponent = f"{value:.2e}".split("e")
        return f"{mantissa}e−{abs(int(exponent))}"
    return f"{value:#.3g}".rstrip(".")


def test_a_touch_reads_them_too(visit):
    page = visit(has_touch=True, viewport={"width": 390, "height": 844})
    page.tap("[data-sample=heart]")
    settle(page)
    page.locator("#map").scroll_into_view_if_needed()
    frame = page.locator("#map").bounding_box()
    page.touchscreen.tap(frame["x"] + frame["width"] / 2 + 2, frame["y"] + frame["height"] / 2 + 2)
    assert page.locator("#readout").inner_text().startswith("Row 4, column 4: ")


def test_a_click_on_the_wall_shows_that_head(looking):
    page = looking
    page.locator("#wall img[src]").wait_for()
    layout = page.request.get(
        page.url.split("#")[0] + address(page, "png")[1:].split("?")[0] + "/wall?format=json"
    ).json()
    scale = page.locator("#wall img").bounding_box()["width"] / layout["size"][0]
    at = [
        (layout["origin"][i] + index * (layout["cell"][i] + layout["gap"]) + layout["cell"][i] / 2) * scale
        for i, index in enumerate((3, 1))  # head 3 of layer 1
    ]
    page.locator("#wall img").click(position={"x": at[0], "y": at[1]})
    settle(page)
    assert asked(page)["layer"] == "1"
    assert asked(page)["head"] == "3"
    assert "layer 1, head 3" in page.locator("#recipe").inner_text()
    frame, cell = page.locator("#wall").bounding_box(), page.locator("#cell").bounding_box()
    assert cell["x"] - frame["x"] + cell["width"] / 2 == pytest.approx(at[0], abs=2)
    assert cell["y"] - frame["y"] + cell["height"] / 2 == pytest.approx(at[1], abs=2)


def test_downloads_match_the_map(looking):
    page = looking
    page.keyboard.press("ArrowUp")
    settle(page)

    def download(kind: str) -> bytes:
        with page.expect_download() as started:
            page.click(f"#take-{kind}")
        assert started.value.suggested_filename.endswith(f".{kind}")
        return Path(started.value.path()).read_bytes()

    numbers = json.loads(download("json"))
    assert numbers["layer"] == 4
    assert np.load(BytesIO(download("npy"))).ravel().tolist() == pytest.approx(numbers["values"])
    picture = Image.open(BytesIO(download("png")))
    assert list(picture.size) == page.evaluate("[map.naturalWidth, map.naturalHeight]")
