"""Familiarity in the answers of the whole app, and images that are refused for it: the demo knows drawn shapes."""

import re

import numpy as np
import pytest
from PIL import Image

from app.batch import BatchClassifier
from app.errors import CannotStart
from app.main import create_app
from app.settings import DEMO_BUNDLE, Settings
from model.shapes import held_out

NEW = 64  # images
KNOWN = 1000  # of the demo, which are drawn before


@pytest.fixture(scope="module")
def shapes(encode) -> list[bytes]:
    """Like those that the demo knows."""
    samples = [*held_out(KNOWN + NEW)][KNOWN:]
    return [encode(Image.fromarray(sample.pixels), "PNG") for sample in samples]


@pytest.fixture(scope="module")
def noise(encode) -> bytes:
    return encode(Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)), "PNG")


def familiarities(client, images, path="/classify"):
    answers = [client.post(path, content=image).json()["results"][0] for image in images]
    return np.array([answer["familiarity"] for answer in answers])


def test_images_like_the_known_ones_are_evenly_familiar_and_noise_is_not(client, shapes, noise):
    found = familiarities(client, shapes)
    assert 0.3 < found.mean() < 0.8
    assert (found < 0.05).mean() < 0.15
    for path in ("/classify", "/embed"):
        assert familiarities(client, [noise], path)[0] < 0.05
    assert client.get("/model").json()["manifest"]["familiarity"]["pictures"] == KNOWN


def test_an_unfamiliar_image_is_refused_where_a_request_wants_that_and_is_not_kept(client, shapes, noise):
    star, (unlike,) = shapes[0], familiarities(client, [noise])
    for query in ("unfamiliar=refuse", "least_familiarity=0.05", "unfamiliar=refuse&least_familiarity=0.06"):
        answer = client.post(f"/classify?{query}", content=noise)
        problem = answer.json()
        assert (answer.status_code, problem["type"]) == (422, "urn:vit-serve:problem:unfamiliar-image")
        assert re.search(r"its familiarity is 0\.0\d+, and 0\.0[56] is the least\.$", problem["detail"])
        assert problem["familiarity"] == unlike
        assert client.post(f"/embed?{query}", content=noise).status_code == 422
        assert client.post(f"/classify?{query}", content=star).status_code == 200
    for query in ("unfamiliar=answer&least_familiarity=0.5", "least_familiarity=0", "unfamiliar=answer"):
        assert client.post(f"/classify?{query}", content=noise).status_code == 200
    kept = client.app.state.services.explainer.store._values
    before = len(kept)
    both = client.post("/classify?unfamiliar=refuse", files=[("image", ("a.png", noise)), ("image", ("b.png", star))])
    refused, answered = both.json()["results"]
    assert (refused["error"]["status"], refused["error"]["file"], set(refused)) == (422, "a.png", {"error"})
    assert answered["id"]
    assert len(kept) == before + 1


def test_a_server_that_refuses_does_so_on_every_door_unless_a_request_says_otherwise(serve, noise):
    with serve(unfamiliar="refuse", least_familiarity=0.06) as client:
        for path in ("/classify", "/embed", "/predict", "/", "/attention"):
            assert client.post(path, content=noise).json()["type"].endswith(":unfamiliar-image"), path
        assert client.post("/classify?unfamiliar=answer", content=noise).status_code == 200
        assert client.get("/model").json()["least_familiarity"] == 0.06
        metrics = client.get("/metrics").text
    assert 'vit_familiarity_bucket{le="0.05"} 6.0' in metrics
    assert 'vit_images_total{outcome="unfamiliar-image"} 5.0' in metrics


def test_a_bundle_without_images_has_no_such_field_and_refuses_to_refuse(serve, oblong_bundle, star):
    with serve(bundle=oblong_bundle) as client:
        assert "familiarity" not in client.post("/classify", content=star).json()["results"][0]
        for name, query in (("unfamiliar", "unfamiliar=refuse"), ("least_familiarity", "least_familiarity=0.1")):
            answer = client.post(f"/classify?{query}", content=star)
            assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (422, name)
        assert client.post("/classify?unfamiliar=answer", content=star).status_code == 200
    with pytest.raises(CannotStart, match="VIT_UNFAMILIAR=refuse needs"):
        create_app(Settings(device="cpu", bundle=oblong_bundle, unfamiliar="refuse"))


def test_rows_of_a_batch_have_it(client, shapes, noise, monkeypatch):
    monkeypatch.setenv("VIT_UNFAMILIAR", "refuse")
    with BatchClassifier(DEMO_BUNDLE) as classify:
        unlike, like = classify([noise, shapes[0]])
    assert unlike["familiarity"] < 0.05
    assert (unlike["predictions"], unlike["error"]["status"]) == (None, 422)
    assert (like["familiarity"], like["error"]) == (familiarities(client, shapes[:1])[0], None)
