"""Patches that are asked, their three colours, two images with the sum that makes them alike, and the embedding."""

from io import BytesIO

import numpy as np
import pytest

from tests.browser.stage import link, settle, turn


@pytest.fixture
def comparing(page):
    """The page with a star, a heart and a bolt, and their tokens."""
    page.set_input_files("#file", [f"app/page/samples/{name}.jpg" for name in ("star", "heart", "bolt")])
    page.locator(".queue .named").nth(2).wait_for()
    settle(page)
    turn(page, "Compare")
    page.locator("#ask-said", has_text="Row 4, column 4 of star.jpg").wait_for()
    return page


def tokens(page, name: str) -> np.ndarray:
    """Of an image that was added, from the service: (patches, features), of length 1."""
    id = page.locator(".queue li", has_text=name).get_attribute("data-id")
    array = np.load(BytesIO(page.request.get(f"{page.url.split('#')[0]}attention/{id}/tokens").body()))
    array = array.reshape(-1, array.shape[-1])
    return array / np.linalg.norm(array, axis=1, keepdims=True)


def coloured(page, tile: int) -> np.ndarray:
    """The colours of the patches of an image on show: (patches, RGBA)."""
    return np.array(
        page.locator("#tiles canvas")
        .nth(tile)
        .evaluate(
            """(canvas) => {
                const { width, height } = canvas;
                const other = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
                other.drawImage(canvas, 0, 0);
                return [...other.getImageData(0, 0, width, height).data];
            }"""
        )
    ).reshape(-1, 4)


def test_a_patch_that_is_asked_names_the_one_that_is_most_like_it(comparing):
    star, heart, bolt = (tokens(comparing, name) for name in ("star", "heart", "bolt"))

    def expected(row: int, column: int) -> str:
        cosines = [others @ star[8 * row + column] for others in (heart, bolt)]
        best = int(cosines[1].max() > cosines[0].max())
        at = int(cosines[best].argmax())
        where = f"row {at // 8}, column {at % 8} of {('heart.jpg', 'bolt.jpg')[best]}"
        most = f"Most like it elsewhere: {where}, cosine {cosines[best].max():.2f}."
        return f"Row {row}, column {column} of star.jpg. {most}"

    said = comparing.locator("#ask-said")
    assert said.inner_text() == expected(4, 4)
    tile = comparing.get_by_role("button", name="Patches of star.jpg")
    box = tile.bounding_box()
    comparing.mouse.move(box["x"] + 5.5 / 8 * box["width"], box["y"] + 2.5 / 8 * box["height"])
    said.get_by_text("Row 2, column 5 of star.jpg").wait_for()
    assert said.inner_text() == expected(2, 5)
    opacities = coloured(comparing, 0)[:, 3]
    assert np.corrcoef(opacities, star @ star[8 * 2 + 5])[0, 1] > 0.999
    tile.focus()
    comparing.keyboard.press("ArrowDown")
    said.get_by_text("Row 3, column 5 of star.jpg").wait_for()
    assert "layer" not in link(comparing)


def test_three_colours_are_the_principal_components_of_all_patches_on_show(comparing):
    comparing.check("[value=colours]")
    comparing.locator("#ask-said", has_text="three principal components").wait_for()
    every = np.concatenate([tokens(comparing, name) for name in ("star", "heart", "bolt")])
    centred = every - every.mean(0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:3]
    colours = np.concatenate([coloured(comparing, tile) for tile in range(3)])
    for band, axis in enumerate(axes):
        places = centred @ axis
        low, high = np.quantile(places, (0.05, 0.95))
        inner = (places > low) & (places < high)  # the ends have one colour
        assert abs(np.corrcoef(places[inner], colours[inner, band])[0, 1]) > 0.99


def test_what_makes_two_images_alike_adds_up_to_their_cosine(comparing):
    comparing.locator("#pair figure").nth(1).wait_for()
    ids = {
        name: comparing.locator(".queue li", has_text=name).get_attribute("data-id")
        for name in ("star", "heart", "bolt")
    }

    def embedding(name: str) -> np.ndarray:
        body = comparing.request.get(f"{comparing.url.split('#')[0]}attention/{ids[name]}/embedding").body()
        return np.load(BytesIO(body)) / np.linalg.norm(np.load(BytesIO(body)))

    cosines = {name: float(embedding("star") @ embedding(name)) for name in ("heart", "bolt")}
    listed = comparing.locator("#nearest li").all_inner_texts()
    order = sorted(cosines, key=lambda name: -cosines[name])
    assert [text.split("\n") for text in listed] == [[f"{name}.jpg", f"{cosines[name]:.3f}"] for name in order]
    comparing.locator("#nearest button").last.click()
    comparing.locator("#pair", has_text=f"star.jpg seen as like {order[1]}.jpg").wait_for()
    for figure in comparing.locator("#pair figure").all():
        numbers = [float(text.replace("−", "-")) for text in figure.locator(".number").all_inner_texts()]
        assert numbers[-1] == pytest.approx(cosines[order[1]], abs=6e-4)
        assert sum(numbers[:-1]) == pytest.approx(numbers[-1], abs=3e-3)
    assert "other=" in link(comparing)
    with comparing.expect_download() as started:
        comparing.click("#take-embedding")
    taken = np.load(started.value.path())
    assert np.allclose(taken / np.linalg.norm(taken), embedding("star"), atol=1e-6)
