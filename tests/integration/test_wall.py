"""GET /attention/{id}/wall through the whole app."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

LAYERS, HEADS, GRID = 6, 4, (8, 8)


def test_a_click_on_the_hottest_pixel_finds_the_head_with_the_largest_number(client, link):
    link += "/wall"
    geometry = client.get(link, params={"format": "json"}).json()
    assert (geometry["layers"], geometry["heads"], geometry["grid"]) == (LAYERS, HEADS, list(GRID))
    answer = client.get(link, params={"colormap": "gray"})
    assert answer.headers["content-type"] == "image/png"
    picture = Image.open(BytesIO(answer.content)).convert("L")
    assert list(picture.size) == geometry["size"]
    pixels = np.asarray(picture)
    (left, top), (width, height), gap = geometry["origin"], geometry["cell"], geometry["gap"]
    inside = np.zeros(pixels.shape, bool)
    for layer, head in np.ndindex(LAYERS, HEADS):
        x, y = left + head * (width + gap), top + layer * (height + gap)
        inside[y : y + height, x : x + width] = True
    y, x = np.unravel_index(np.where(inside, pixels, 0).argmax(), pixels.shape)
    found = (y - top) // (height + gap), (x - left) // (width + gap)
    numbers = np.load(BytesIO(client.get(link, params={"format": "npy"}).content), allow_pickle=False)
    assert found == np.unravel_index(numbers.argmax(), numbers.shape)[:2]
    assert [geometry["min"], geometry["max"]] == geometry["limits"] == [numbers.min(), numbers.max()]


@pytest.mark.parametrize("method", ["rollout", "evidence"])
def test_a_method_without_heads_is_refused_in_a_sentence(client, link, method):
    response = client.get(f"{link}/wall", params={"method": method})
    assert response.status_code == 422
    assert response.json()["detail"].startswith(f"A wall shows the maps of single heads, and {method} has none")
