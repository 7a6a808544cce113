"""GET /model/inspect: the model's own pictures."""

import pytest

from app.settings import DEMO_BUNDLE


def test_the_accept_header_chooses_unless_the_format_is_said(client):
    wants_json, url = {"accept": "application/json"}, "/model/inspect/positions"
    assert client.get(url, headers=wants_json).json()["grid"] == [8, 8]
    assert client.get(url, params={"format": "png"}, headers=wants_json).headers["content-type"] == "image/png"
    assert client.get(url, params={"format": "npy"}).status_code == 422


def test_a_picture_that_is_not_there_is_a_404_that_says_which_are(client):
    response = client.get("/model/inspect/relative_bias")
    assert (response.status_code, response.json()["type"]) == (404, "urn:vit-serve:problem:unknown-picture")
    assert response.json()["detail"] == "The pictures of this model are: filters, positions, distance."


@pytest.mark.parametrize("kind", ["png", "json"])
def test_a_picture_is_the_file_of_the_bundle(client, kind):
    stored = (DEMO_BUNDLE / "inspect" / f"distance.{kind}").read_bytes()
    sent = client.get("/model/inspect/distance", params={"format": kind}).content
    assert sent.removesuffix(b"\n") == stored
