"""The page for a bundle that knows its images: it says so where an image is unlike them."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.support.familiar import familiar_bundle
from tests.support.server import running


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> Iterator[str]:
    """Of a bundle that knows nothing like an image."""
    known = np.random.default_rng(0).normal(size=(50, 128)).astype(np.float32)
    with running(familiar_bundle(tmp_path_factory.mktemp("bundle"), known, np.zeros(50, int))) as server:
        yield server.url


def test_an_unfamiliar_image_is_called_so(looking):
    said = looking.locator("#unfamiliar").inner_text()
    assert said.startswith("This image is unlike the 50 images that the model was shown: it is less familiar than 98 %")
    assert looking.locator("#labels li").count() == 5
