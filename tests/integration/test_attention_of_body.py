"""POST /attention: a map of the image in the request is the one that GET draws, and nothing is kept."""

from base64 import b64encode
from io import BytesIO

import numpy as np
import pytest

EVIDENCE = {"method": "evidence", "label": "drop", "against": "ring", "layer": "-1"}


def numbers(client, star, **params) -> dict:
    return client.post("/attention", content=star, params={"format": "json", **params}).json()


MEASURED = {"method": "measured", "passes": 16}


@pytest.mark.parametrize(
    "params", [{}, {"method": "rollout", "colorbar": True}, EVIDENCE, {"method": "evidence"}, MEASURED]
)
def test_it_is_the_map_that_get_draws(client, star, classified, params):
    for format in ("png", "npy"):
        asked = {**params, "format": format}
        assert client.post("/attention", content=star, params=asked).content == (
            client.get(classified["attention"], params=asked).content
        ), format
    posted, drawn = (
        numbers(client, star, **params),
        client.get(classified["attention"], params={**params, "format": "json"}).json(),
    )
    assert drawn.pop("id") == classified["id"]
    assert posted.pop("predictions") == classified["predictions"]
    assert posted == drawn


def test_an_image_may_come_in_a_form_or_in_json_with_parameters(client, star):
    expected = client.post("/attention", content=star, params={**EVIDENCE, "format": "npy"}).content
    form = client.post("/attention", files={"image": star}, data={**EVIDENCE, "format": "npy"})
    json = {"inputs": b64encode(star).decode(), "parameters": {**EVIDENCE, "layer": -1, "format": "npy"}}
    for answer in (form, client.post("/attention", json=json)):
        assert (answer.status_code, answer.content) == (200, expected), answer.text
    assert np.load(BytesIO(expected)).shape == (8, 8)


def test_nothing_is_kept_and_one_pass_does_all(client, star, watched):
    store = client.app.state.services.explainer.store
    kept = set(store._values)
    assert "id" not in numbers(client, star)
    assert watched.runs == [("explain", 1)]
    assert set(store._values) == kept


@pytest.mark.parametrize(("images", "status"), [(2, 422), (4, 400)])
def test_it_takes_one_image_and_more_for_similarity_alone(client, images, status):
    assert client.post("/attention", files=[("image", b"one")] * images).status_code == status


def test_a_model_without_a_head_has_maps_and_no_predictions(serve, headless_bundle, star):
    with serve(bundle=headless_bundle) as client:
        answer = numbers(client, star)
        assert (answer["grid"], "predictions" in answer) == ([3, 5], False)
        refused = client.post("/attention?method=evidence", content=star)
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:vit-serve:problem:no-classes")
