"""The page for a bundle that knows its images: it says so where an image is unlike them."""

from collections.abc import Iterator

import pytest

from tests.browser.stage import link
from tests.support.familiar import strange_bundle
from tests.support.server import running


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> Iterator[str]:
    """Of a bundle that knows nothing like an image."""
    with running(strange_bundle(tmp_path_factory.mktemp("bundle"), known=50)) as server:
        yield server.url


def test_an_unfamiliar_image_is_called_so(looking):
    said = looking.locator("#unfamiliar").inner_text()
    assert said.startswith("This image is unlike the 50 images that the model was shown: it is less familiar than 98 %")
    assert looking.locator("#labels li").count() == 5
    of_others = "import('/page/sentence.js').then(({ unlike }) => unlike({ pictures: 500, held_out: 99 }, 0.34))"
    assert "less familiar than 66 % of the 99 that were held out" in looking.evaluate(of_others)


def test_it_still_is_when_the_person_comes_back_to_it(looking):
    said = looking.locator("#unfamiliar").inner_text()
    assert link(looking)
    looking.set_input_files("#file", "app/page/samples/heart.jpg")
    looking.locator(".queue .chosen", has_text="heart.jpg").wait_for()
    assert link(looking)
    looking.go_back()
    looking.locator(".queue .chosen", has_text="star.jpg").wait_for()
    assert looking.locator("#unfamiliar").inner_text() == said


def test_that_is_a_warning_above_the_label(looking):
    warning, label = looking.locator("#unfamiliar"), looking.locator(".labels .name").first
    assert warning.bounding_box()["y"] < label.bounding_box()["y"]
    size, weight, color, edge = warning.evaluate(
        "(e) => ['fontSize', 'fontWeight', 'color', 'borderColor'].map((name) => getComputedStyle(e)[name])"
    )
    assert (float(size.removesuffix("px")) > 16, int(weight) >= 600) == (True, True)
    looking.evaluate("document.body.style.color = 'var(--wrong)'")  # its contrast is in test_look.py
    assert looking.evaluate("getComputedStyle(document.body).color") == color == edge
