"""GET /attention/{id}/report, and the files with which a client draws the maps of a kept image itself."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from tests.support.pictures import jpeg

LAYERS, TOKENS = 6, 65


@pytest.fixture(scope="module")
def report(client, classified) -> dict:
    return client.get(f"{classified['attention']}/report").json()


def test_entropies_are_those_of_the_rows(client, classified, report):
    numbers = client.get(classified["attention"], params={"layer": 3, "head": 2, "format": "json"}).json()
    row = np.array([numbers["class_token_mass"], *numbers["values"]])
    assert report["heads"]["entropy"][3][2] == pytest.approx(-(row * np.log2(row)).sum(), rel=1e-3)
    assert (np.array(report["heads"]["entropy"]) <= np.log2(TOKENS)).all()


def test_contributions_are_the_evidence_of_the_map(client, classified, report):
    numbers = client.get(classified["attention"], params={"method": "evidence", "format": "json"}).json()
    receipt = numbers["receipt"]
    assert report["logit"] == pytest.approx(receipt["logit"], rel=1e-4)
    contributions = np.array(report["heads"]["contribution"])
    assert contributions.sum() == pytest.approx(receipt["patches"] + receipt["prefix"], rel=1e-3)
    assert contributions / report["logit"] == pytest.approx(np.array(report["heads"]["share"]))


def test_the_lens_ends_at_the_answer(classified, report):
    assert report["predictions"] == classified["predictions"]
    assert report["label"] == report["lens"]["classes"][0] == "star"
    scores = np.array(report["lens"]["scores"])
    assert scores.shape == (LAYERS, 5)
    assert scores[-1, 0] == pytest.approx(classified["predictions"][0]["score"], abs=1e-4)
    assert scores[0, 0] < scores[-1, 0]


def test_a_report_on_another_class(client, classified, report):
    name, index = (classified["predictions"][1][field] for field in ("label", "index"))
    by_name, by_index = (
        client.get(f"{classified['attention']}/report?label={label}").json() for label in (name, index)
    )
    assert by_name == by_index
    assert (by_name["label"], by_name["index"]) == (name, index)
    assert by_name["heads"]["entropy"] == report["heads"]["entropy"]
    assert by_name["heads"]["contribution"] != report["heads"]["contribution"]


def array(client, path: str) -> np.ndarray:
    return np.load(BytesIO(client.get(path).content))


def test_all_maps_the_embedding_and_the_image_come_in_three_files(client):
    (result,) = client.post("/embed?attention=true", content=jpeg(5)).json()["results"]
    path = f"/attention/{result['id']}"
    manifest = client.get("/model").json()["manifest"]
    layers, heads = manifest["layers"], manifest["heads"]
    maps = array(client, f"{path}/maps")
    assert np.array_equal(maps[: layers * heads], array(client, f"{path}/wall?format=npy").reshape(-1, *maps.shape[1:]))
    assert np.array_equal(maps[layers * heads], array(client, f"{path}?method=rollout&format=npy"))
    of_top = maps[layers * heads + 1 :][:layers]
    assert np.array_equal(of_top[2], array(client, f"{path}?method=evidence&layer=2&format=npy"))
    assert len(maps) == layers * heads + 1 + layers * manifest["explains"]["classes"][0]
    half = array(client, f"{path}/maps?dtype=float16")
    assert half.dtype == np.float16
    assert np.allclose(half, maps, rtol=1e-3, atol=1e-7)
    assert np.allclose(array(client, f"{path}/embedding"), result["embedding"], rtol=1e-4, atol=1e-5)
    sizes = {"all": (result["image"]["width"], result["image"]["height"]), "seen": tuple(manifest["image"]["size"])}
    for part, size in sizes.items():
        with Image.open(BytesIO(client.get(f"{path}/image?part={part}").content)) as image:
            assert (image.format, image.size) == ("JPEG", size)
