"""POST /classify through the whole app, on the demo model."""

import asyncio
from io import BytesIO
from unittest.mock import patch

import pytest
from PIL import Image

from app.bundle import load_bundle
from app.settings import DEMO_BUNDLE
from model.shapes import LABELS, held_out


def test_a_raw_body_is_named_and_linked(client, star):
    answer = client.post("/classify", content=star).json()
    assert answer["model"] == {"name": "shapes", "digest": load_bundle(DEMO_BUNDLE).digest}
    (result,) = answer["results"]
    assert result["image"] == {"width": 320, "height": 240, "format": "JPEG"}
    assert result["attention"] == f"/attention/{result['id']}"
    best, *others = result["predictions"]
    assert (best["label"], best["index"], len(others)) == ("star", LABELS.index("star"), 4)


def test_many_images_are_answered_in_order(client, encode):
    pictures = list(held_out(12, seed=77))
    files = [(f"part{i}", (f"{i}.png", encode(Image.fromarray(p.pixels)))) for i, p in enumerate(pictures)]
    together = client.post("/classify?top_k=12", files=files).json()["results"]
    assert len({result["id"] for result in together}) == 12
    for picture, result in zip(pictures, together, strict=True):
        (alone,) = client.post("/classify?top_k=12", content=encode(Image.fromarray(picture.pixels))).json()["results"]
        ours, theirs = ({p["index"]: p["score"] for p in one["predictions"]} for one in (result, alone))
        assert ours == pytest.approx(theirs, abs=1e-4)


@pytest.mark.parametrize("path", ["/classify?top_k=12&attention=false", "/predict?top_k=12"])
def test_many_labels_are_ranked_outside_of_the_event_loop(client, star, monkeypatch, path):
    few = client.post(path, content=star)
    monkeypatch.setattr("app.api.results.MANY_LABELS", 11)
    with patch("asyncio.to_thread", wraps=asyncio.to_thread) as aside:
        many = client.post(path, content=star)
    assert (many.content, many.status_code, aside.call_count) == (few.content, 200, 1)


@pytest.mark.parametrize(("query", "given"), [("top_k=1000", 12), ("threshold=0&top_k=3", 3), ("threshold=1", 0)])
def test_top_k_and_a_threshold_say_how_many_labels(client, star, query, given):
    (result,) = client.post(f"/classify?{query}", content=star).json()["results"]
    assert len(result["predictions"]) == given
    assert client.get(result["attention"]).status_code == 200


def test_a_bad_image_among_good_ones_costs_only_itself(client, star):
    contents = {"a.jpg": star, "b": b"not an image", "c/d.jpg": star[:2000], "é": star}
    response = client.post("/classify", files=[("image", part) for part in contents.items()])
    assert response.status_code == 200
    good, text, torn, last = results = response.json()["results"]
    assert [(result.get("image") or result["error"])["file"] for result in results] == [*contents]
    assert good["predictions"][0]["label"] == last["predictions"][0]["label"] == "star"
    assert (text["error"]["status"], torn["error"]["status"], set(torn)) == (415, 422, {"error"})


def test_only_bad_images_are_an_error_that_lists_them(client):
    response = client.post("/classify", files=[("a", ("a", b"text")), ("b", ("b", b"more"))])
    assert response.status_code == 415
    assert [(e["pointer"], e["file"]) for e in response.json()["errors"]] == [("/images/0", "a"), ("/images/1", "b")]
    alone = client.post("/classify", files=[("a", ("a", b"text"))])
    assert (alone.status_code, alone.json()["file"], "errors" in alone.json()) == (415, "a", False)


@pytest.mark.parametrize(("size", "drawn"), [((1, 1), (1, 1)), ((3000, 50), (600, 10))])
def test_a_tiny_and_a_long_image_are_classified_and_explained(client, encode, size, drawn):
    image = encode(Image.new("RGB", size, "teal"))
    (result,) = client.post("/classify?top_k=12", content=image).json()["results"]
    assert result["image"] == {"width": size[0], "height": size[1], "format": "PNG"}
    assert {p["label"] for p in result["predictions"]} == set(LABELS)
    assert sum(p["score"] for p in result["predictions"]) == pytest.approx(1)
    with Image.open(BytesIO(client.get(result["attention"]).content)) as heatmap:
        assert heatmap.size == drawn
