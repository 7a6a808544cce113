"""The page for a model without a head: embeddings and maps, and no part that needs labels."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.stage import asked, link, settle, turn
from tests.support.server import running

OF_CLASSES = "#labels [value=evidence] [value=positive_evidence] #cover-part #receipt-part #lens-part #verify-part"


@pytest.fixture(scope="module")
def url(headless_bundle: Path) -> Iterator[str]:
    with running(headless_bundle) as server:
        yield server.url


def test_a_backbone_promises_embeddings_and_has_no_samples(page):
    assert page.locator("#samples").is_hidden()
    assert page.locator("h1").inner_text() == "Where did the model look?"
    assert page.locator(".intro p").first.inner_text().startswith("Embeddings and exact attention maps")


def test_a_backbone_shows_maps_and_no_labels(looking, visit):
    assert looking.get_by_role("tab").all_inner_texts() == ["Map", "Inside"]
    assert "32 numbers" in looking.locator("#queue").inner_text()
    assert asked(looking)["method"] == "class_token"
    assert looking.locator("#saying").inner_text() == "Bright patches are where the model looks in layer 1."
    assert looking.locator("#map").is_visible()
    for part in OF_CLASSES.split():
        assert not looking.locator(part).is_visible(), part
    turn(looking, "Inside")
    looking.locator("#heads table").first.wait_for()
    assert looking.locator("#wall-part").is_visible()
    assert looking.locator("#heads figcaption").count() == 2
    for part in OF_CLASSES.split():
        assert not looking.locator(part).is_visible(), part
    page = visit(link(looking).replace("inside", "what-if"))
    settle(page)
    assert (page.locator("#map").is_visible(), page.locator("#labels").is_visible()) == (True, False)
