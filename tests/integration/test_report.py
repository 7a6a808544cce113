"""GET /attention/{id}/report on the demo model: the numbers of the maps, by layer and head."""

import numpy as np
import pytest

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
