"""The map and what changes it: controls, keys, the wall, the pointer, downloads."""

import json
from base64 import b64decode
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.browser.stage import address, asked, link, pick, served, settle, shown, turn

CONTROLS = [  # what is done to which control, and the parameter that follows
    *(("check", f"#layer [value='{layer}']", {"layer": layer}) for layer in ("2", "mean")),
    *(("check", f"#head [value='{head}']", {"head": head}) for head in ("1", "max", "min")),
    ("fill", "[name=alpha]", {"alpha": "0.9"}),
    ("select_option", "[name=colormap]", {"colormap": "inferno"}),
    *(("select_option", "[name=scale]", {"scale": scale}) for scale in ("percentile", "shared", "absolute")),
    *(("select_option", "[name=interpolation]", {"interpolation": way}) for way in ("nearest", "bicubic")),
    ("select_option", "[name=threshold]", {"threshold": "0.5"}),
    ("uncheck", "[name=fade]", {"fade": "false"}),
    ("uncheck", "[name=overlay]", {"overlay": "false"}),
    *(("check", f"[value={method}]", {"method": method}) for method in ("rollout", "evidence", "positive_evidence")),
]
WAYS = [
    *("[data-sample=star]", ".queue .named button", ".labels button", "[value=rollout]", "#layer input"),
    *("#layer [value=mean]", "[name=label]", "#tab-inside", "#wall button"),
]


def significant(value: float) -> str:
    """Three significant digits, in the format of the page."""
    if abs(value) < 1e-4:
        mantissa, exponent = f"{value:.2e}".split("e")
        return f"{mantissa}e−{abs(int(exponent))}"
    return f"{value:#.3g}".rstrip(".")


def test_it_opens_on_the_evidence_for_the_top_label(looking):
    assert asked(looking)["method"] == "evidence"
    assert "75 % of this image" in looking.locator("#cropped").inner_text()
    numbers = served(looking, address(looking))
    high = significant(numbers["limits"][1])
    assert looking.locator("#ramp").inner_text().split("\n") == [f"−{high}", f"> +{high}"]
    assert numbers["beyond"] == 1
    assert looking.locator("#beyond").inner_text().startswith("1 of 64 numbers")


def test_maps_that_a_busy_server_refuses_are_asked_for_again(looking, visit, complaints):
    page = visit()
    busy = {"status": 503, "headers": {"Retry-After": "3"}, "json": {"detail": "The service is full."}}
    refused: set[str] = set()

    def refuse_once(route):
        url = route.request.url
        route.fallback() if url in refused else route.fulfill(**busy)
        refused.add(url)

    page.route("**/attention/**", refuse_once)
    page.evaluate("(fragment) => (location.hash = fragment)", f"{link(looking)}&tab=inside")
    said = "The server is busy. It is asked again in 3 s."
    for place in ("#trouble", "#wall-status", "#receipt-status"):
        page.locator(place, has_text=said).wait_for(state="attached")
    settle(page)
    for part in ("#wall button", ".receipt", ".lens"):
        page.locator(part).first.wait_for()
    turn(page, "Answer")
    assert page.locator("#trouble").is_hidden()
    assert {complaint[:3] for complaint in complaints} == {"503"}
    complaints.clear()


def test_a_nearly_flat_map_says_so_and_does_not_blaze(looking):
    looking.keyboard.press("3")
    looking.check("#layer [value='0']")
    settle(looking)
    assert looking.locator("#saying").inner_text().startswith("This map is nearly flat")
    assert asked(looking)["scale"] == "absolute"
    assert looking.locator("#ramp").inner_text().split() == ["0.00", "1.00"]


def test_every_control_asks_for_what_it_says_and_shows_it(looking):
    looking.check("[value=class_token]")
    looking.click("#appearance summary")
    pictures = {shown(looking)}
    for action, control, parameters in CONTROLS:
        before = asked(looking)
        values = parameters.values() if action in ("fill", "select_option") else ()
        getattr(looking, action)(f"#controls {control}", *values)
        assert {name: value for name, value in asked(looking).items() if before.get(name) != value} == parameters
        picture = shown(looking)
        assert picture not in pictures, parameters
        pictures.add(picture)


def test_every_layer_and_head_is_a_step_and_what_has_no_effect_is_hidden(looking):
    def steps(name: str) -> list[str]:
        return looking.locator(f"#{name} label").all_inner_texts()

    layers = [str(layer) for layer in range(6)]
    assert (steps("layer"), looking.locator("#head").is_visible()) == (["sum", "mean", *layers], False)
    assert looking.input_value("#layer :checked") == "sum"
    looking.check("[value=class_token]")
    assert (steps("layer"), steps("head")) == (["mean", *layers], ["mean", "max", "min", "0", "1", "2", "3"])
    assert looking.locator("#why").is_hidden()
    looking.check("#head [value='2']")
    assert "head=2" in link(looking)
    looking.check("[value=rollout]")
    assert looking.locator("#layer, #head, #why").filter(visible=True).count() == 0
    assert "head" not in link(looking)
    looking.click("#appearance summary")
    looking.uncheck("[name=overlay]")
    assert looking.locator("[name=alpha], [name=fade]").filter(visible=True).count() == 0


def test_a_handle_draws_the_original_over_the_map(looking, visit):
    handle = looking.get_by_role("slider", name="Draw the original over the map")
    assert looking.locator("#original-pane").is_hidden()
    box = looking.locator("#map-pane").bounding_box()
    y = box["y"] + box["height"] / 2
    looking.mouse.move(box["x"] + 18, y)
    looking.mouse.down()
    looking.mouse.move(box["x"] + box["width"] / 2, y, steps=4)
    looking.mouse.up()
    drawn = float(handle.input_value())
    assert drawn == pytest.approx(0.5, abs=0.02)
    looking.mouse.move(box["x"] + box["width"] / 2 + 2, y + 2)  # the patch below the handle is read too
    assert looking.locator("#readout").inner_text().startswith("Row 4, column 4: ")
    other = visit(link(looking))
    settle(other)
    assert float(other.locator("#wipe").input_value()) == drawn
    handle.focus()
    for key in ("Shift+Tab", "Tab", "Home"):  # a control that Tab led to keeps its keys
        looking.keyboard.press(key)
    assert looking.locator("#original-pane").is_hidden()


DRAWN = [  # what the state says, of maps that the page has
    {"method": "evidence"},
    {"method": "evidence", "fade": "false", "layer": "2"},
    {"method": "positive_evidence", "colormap": "turbo", "scale": "percentile", "threshold": "0.8"},
    {"method": "class_token", "head": "max", "interpolation": "bicubic", "scale": "shared"},
    {"method": "class_token", "layer": "mean", "head": "1", "fade": "false", "alpha": "0.5"},
    {"method": "rollout", "overlay": "false", "interpolation": "nearest", "colormap": "gray"},
]


def test_the_page_draws_what_the_service_draws_and_asks_for_no_map_that_it_has(looking, visit):
    page = visit(link(looking))  # without the file: on the image of the service
    settle(page)
    page.wait_for_load_state("networkidle")
    asked_for = []
    page.on("request", lambda request: asked_for.append(request.url) if "/attention/" in request.url else None)
    for style in DRAWN:
        fragment = link(looking).split("&")[0] + "".join(f"&{name}={value}" for name, value in style.items())
        page.evaluate("(fragment) => (location.hash = fragment)", fragment)
        page.wait_for_function(
            "method => new URL(document.getElementById('take-png').href).searchParams.get('method') === method",
            arg=style["method"],
        )
        settle(page)
        png = page.request.get(page.url.split("#")[0].rstrip("/") + address(page, "png").replace("&colorbar=true", ""))
        own = b64decode(page.evaluate("map.toDataURL()").split(",")[1])
        one, other = (np.asarray(Image.open(BytesIO(data)).convert("RGBA")).astype(int) for data in (own, png.body()))
        assert np.abs(one - other)[other[..., 3] > 0].max() <= 1, style
    assert asked_for == []


def test_only_the_newest_of_many_maps_is_shown(looking):
    """The response for one layer is held back until the response for the next layer has arrived."""
    held = []
    looking.fill("[name=label]", "triangle")  # of which the page has no maps yet
    looking.route(lambda url: "layer=1" in url, lambda route: held.append(route))
    with looking.expect_request(lambda request: "layer=1" in request.url):
        looking.check("#layer [value='1']")
    looking.check("#layer [value='2']")
    newest = shown(looking)
    for route in held:
        route.continue_()
    looking.wait_for_timeout(200)
    assert held
    assert shown(looking) == newest
    assert looking.locator("#saying").inner_text().startswith("In layer 2, red patches speak for “triangle”")


def test_the_pointer_reads_the_numbers_of_the_json(looking):
    looking.check("[value=class_token]")
    settle(looking)
    numbers = served(looking, address(looking))
    looking.locator("#map").scroll_into_view_if_needed()
    frame = looking.locator("#map").bounding_box()
    width, height = looking.evaluate("[map.width, map.height]")
    scale = min(frame["width"] / width, frame["height"] / height)
    drawn = scale * height / numbers["image"][1]  # CSS pixels per pixel of the original
    left = frame["x"] + (frame["width"] - width * scale) / 2
    top = frame["y"] + (frame["height"] - height * scale) / 2
    x0, y0, x1, y1 = numbers["crop_box"]
    rows, columns = numbers["grid"]
    for row, column in [(0, 0), (3, 5), (7, 7), (6, 1)]:
        x = x0 + (x1 - x0) * (column + 0.5) / columns
        y = y0 + (y1 - y0) * (row + 0.5) / rows
        looking.mouse.move(left + x * drawn, top + y * drawn)
        value = numbers["values"][row * columns + column]
        text = looking.locator("#readout").inner_text()
        assert text.startswith(f"Row {row}, column {column}: {significant(value)}, ")
        share = 100 * value / sum(numbers["values"])
        assert float(text.split(", ")[2].split(" %")[0]) == pytest.approx(share, abs=0.06)
        box = looking.locator("#patch").bounding_box()
        assert box["x"] + box["width"] / 2 == pytest.approx(left + x * drawn, abs=1)
        assert box["y"] + box["height"] / 2 == pytest.approx(top + y * drawn, abs=1)
    looking.mouse.move(left + (x0 / 2) * drawn, top + 10)  # outside the part that the network sees
    assert looking.locator("#patch").is_hidden()
    assert looking.locator("#readout").inner_text().startswith("Point at a patch")


def test_a_click_on_the_wall_shows_that_head_beside_it_on_the_same_scale(looking):
    turn(looking, "Inside")
    cell = looking.get_by_role("button", name="Layer 1, head 3")
    cell.click()
    settle(looking)
    assert (asked(looking)["layer"], asked(looking)["head"]) == ("1", "3")
    assert cell.get_attribute("aria-pressed") == "true"
    near = looking.locator("#wall-part .near")
    assert near.inner_text() == "Bright patches are where head 3 looks in layer 1."
    assert near.locator("canvas").evaluate("(near) => near.toDataURL() === map.toDataURL()")
    low, high = map(significant, served(looking, address(looking).split("?")[0] + "/wall?format=json")["limits"])
    for bar, beyond in (("#ramp", ""), ("#wall-ramp", "> ")):
        assert looking.locator(bar).get_attribute("aria-label") == f"Colour bar from {low} to {beyond}{high}"


def test_a_long_image_is_shown_around_the_part_that_the_network_saw(page, encode):
    pick(page, {"long.png": encode(Image.effect_noise((100, 800), 64))})
    settle(page)
    frame = page.locator("#map-pane").bounding_box()
    assert frame["height"] == pytest.approx(2.5 * frame["width"], abs=1)
    page.mouse.move(frame["x"] + 1, frame["y"] + (frame["height"] - frame["width"]) / 2 + 2)
    assert page.locator("#readout").inner_text().startswith("Row 0, column 0: ")
    box = page.locator("#patch").bounding_box()
    assert box["x"] == pytest.approx(frame["x"], abs=1)
    assert box["y"] == pytest.approx(frame["y"] + (frame["height"] - frame["width"]) / 2, abs=1)


def test_downloads_match_the_map(looking):
    looking.keyboard.press("ArrowUp")
    settle(looking)

    looking.evaluate("URL.revokeObjectURL = (address) => revoked.push(address); revoked = []")

    def download(kind: str) -> bytes:
        with looking.expect_download() as started:
            looking.click(f"#take-{kind}")
        assert started.value.suggested_filename.endswith(f".{kind}")
        assert started.value.url not in looking.evaluate("revoked")  # Safari reads it later
        return Path(started.value.path()).read_bytes()

    numbers = json.loads(download("json"))
    assert numbers["layer"] == 5
    assert np.load(BytesIO(download("npy"))).ravel().tolist() == pytest.approx(numbers["values"])
    picture = Image.open(BytesIO(download("png")))
    width, height = looking.evaluate("[map.width, map.height]")
    assert (picture.height, picture.width > width) == (height, True)  # with a colour bar


def test_they_work_after_each_way_of_choosing(page):
    with page.expect_file_chooser() as chooser:
        page.get_by_text("Choose image files").click()
    chooser.value.set_files("app/page/samples/star.jpg")
    for way in (None, *WAYS):
        if way:
            page.locator(way).first.click()
        settle(page)
        page.keyboard.press("Escape")  # closes a list
        for key in ("1", "3", "ArrowUp"):
            page.keyboard.press(key)
        assert (asked(page)["method"], asked(page).get("layer")) == ("class_token", "4"), way
        page.keyboard.press("1")
        page.keyboard.press("ArrowDown")
        assert (asked(page)["method"], asked(page).get("layer")) == ("evidence", "0"), way


def test_arrows_step_through_layers_and_heads(looking):
    looking.keyboard.press("3")
    for key, expected in [
        ("ArrowUp", ("4", "mean")),  # from the last of six layers
        ("ArrowRight", ("4", "0")),
        ("ArrowRight", ("4", "1")),
        ("ArrowDown", ("5", "1")),
        ("ArrowDown", ("5", "1")),  # there is none below
        ("ArrowLeft", ("5", "0")),
    ]:
        looking.keyboard.press(key)
        assert (asked(looking).get("layer", "5"), asked(looking)["head"]) == expected
    assert looking.input_value("#layer :checked") == "5"
    looking.keyboard.press("?")
    assert looking.locator("#help").is_visible()


def test_the_layers_play_from_numbers_that_are_there(looking):
    looking.keyboard.press("3")
    looking.wait_for_load_state("networkidle")
    asked_for = []
    looking.on("request", lambda request: asked_for.append(request.url) if "/attention/" in request.url else None)
    looking.evaluate(
        """() => {
            const [link, seen] = [document.getElementById("take-png"), (window.seen = [])];
            const look = () => seen.push(new URL(link.href).searchParams.get("layer"));
            new MutationObserver(look).observe(link, { attributeFilter: ["href"] });
        }"""
    )
    looking.get_by_role("button", name="Play the layers").click()
    looking.get_by_role("button", name="Stop").wait_for()
    looking.get_by_role("button", name="Play the layers").wait_for()
    assert looking.evaluate("[...new Set(seen)]") == ["0", "1", "2", "3", "4", "5"]
    assert asked_for == []
