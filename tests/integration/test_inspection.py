"""GET /model/inspect: the model's own pictures, and the one that grows with use."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from tests.support.engines import Watched


def test_the_accept_header_chooses_unless_the_format_is_said(client):
    wants_json, url = {"accept": "application/json"}, "/model/inspect/positions"
    assert client.get(url, headers=wants_json).json()["grid"] == [8, 8]
    assert client.get(url, params={"format": "png"}, headers=wants_json).headers["content-type"] == "image/png"
    assert client.get(url, params={"format": "npy"}).status_code == 422


@pytest.mark.parametrize("name", ["relative_bias", "nope", "filters.png", "%00"])
def test_a_picture_that_is_not_there_is_a_404_that_says_which_are(client, name):
    response = client.get(f"/model/inspect/{name}")
    assert (response.status_code, response.json()["type"]) == (404, "urn:vit-serve:problem:unknown-picture")
    assert response.json()["detail"] == "The pictures of this model are: filters, positions, distance."


def test_the_distances_include_every_explained_image(serve, oblong_bundle, encode):
    noise = np.random.default_rng(0).integers(0, 256, (3, 40, 60, 3), dtype=np.uint8)
    first, second, third = (encode(Image.fromarray(pixels)) for pixels in noise)
    given = []
    with serve(bundle=oblong_bundle) as client:
        model = client.app.state.services.model
        batches = model.sizes("explain") if model.streams == 1 else [1]  # a busy machine may be judged slow
        for size in batches:  # or the known image would be run with the first batch of a size
            model.check("explain", size)
        model.engine = Watched(model.engine, after=lambda graph, outputs: given.extend(outputs.get("distance", [])))
        drawn = client.get("/model/inspect/distance")
        before = client.get("/model/inspect/distance?format=json")
        client.post("/classify", files=[("a", ("a", first)), ("b", ("b", second))])
        client.post("/classify", content=third)
        client.post("/classify?attention=false", content=first)
        after = client.get("/model/inspect/distance?format=json")
        drawn_after = client.get("/model/inspect/distance", headers={"if-none-match": drawn.headers["etag"]})
    assert (before.json()["served"], before.json()["unit"], before.json()["patch_size"]) == (None, "patches", 8)
    assert after.json()["reference"] == before.json()["reference"]
    assert after.json()["served"]["pictures"] == len(given) == 3
    assert np.array(after.json()["served"]["distance"]) == pytest.approx(np.mean(given, axis=0), rel=1e-6)
    assert np.ptp(given, axis=0).min() > 0  # else the mean would say little
    assert after.headers["etag"] != before.headers["etag"]
    assert drawn_after.status_code == 200
    assert Image.open(BytesIO(drawn_after.content)).size == (960, 600)
    assert drawn_after.content != drawn.content


def test_a_bundle_may_have_no_pictures(serve, bundle_with, oblong_bundle):
    with serve(bundle=bundle_with(oblong_bundle, inspect={}), max_batch=1) as client:
        assert client.get("/model/inspect").json() == {"pictures": []}
        assert client.get("/model/inspect/filters").json()["detail"] == "The pictures of this model are: none."
