"""POST /attention/{id}/verify on the demo model: a map is put to the test by the model that it explains."""

import pytest

from model.shapes import LABELS


@pytest.fixture(scope="module")
def classified(client, star) -> dict:
    """Under an id that is always the same, for the random orders come from it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.stores.id.secrets.token_urlsafe", lambda size: "star" * 5 + "__")
        return client.post("/classify", content=star).json()["results"][0]


def verify(client, link, **params):
    return client.post(f"{link}/verify", params=params)


@pytest.mark.parametrize("method", ["class_token", "rollout", "evidence", "positive_evidence", "measured"])
def test_the_maps_of_a_star_beat_every_random_order(client, link, method):
    judged = verify(client, link, method=method, steps=16, random_orders=3).json()
    deletion, insertion = judged["deletion"], judged["insertion"]
    assert deletion["area"] < min(deletion["random_areas"])
    assert insertion["area"] > max(insertion["random_areas"])
    assert deletion["gain"] == pytest.approx(deletion["random_area"] - deletion["area"])
    assert insertion["gain"] == pytest.approx(insertion["area"] - insertion["random_area"])


def test_the_curves_start_and_end_where_they_have_to(client, classified, link):
    answer = verify(client, link).json()
    best = classified["predictions"][0]
    assert (answer["label"], answer["index"]) == (best["label"], best["index"])
    assert answer["score"] == pytest.approx(best["score"], abs=1e-5)
    deletion, insertion = answer["deletion"], answer["insertion"]
    assert deletion["scores"][0] == insertion["scores"][-1] == answer["score"]
    assert deletion["random"][0] == pytest.approx(answer["score"])
    assert deletion["fractions"] == insertion["fractions"] == [i / 8 for i in range(9)]
    assert (answer["fill"], answer["steps"], answer["random_orders"]) == ("mean", 8, 16)
    assert answer["chance"] <= 0.02
    assert (answer["method"], answer["layer"], answer["head"]) == ("class_token", 5, "mean")


def test_every_parameter_counts(client, link):
    variants = (
        "method=class_token method=rollout method=evidence layer=0 head=1 fill=black fill=gray fill=blur steps=16"
    )
    answers = {client.post(f"{link}/verify?random_orders=1&{query}").text for query in variants.split()}
    assert len(answers) == len(variants.split())


def test_the_score_of_another_class_can_be_followed(client, classified, link):
    second = classified["predictions"][1]
    answer = verify(client, link, method="evidence", label=second["label"], against="star", steps=4).json()
    assert (answer["label"], answer["index"]) == (second["label"], LABELS.index(second["label"]))
    assert answer["score"] == pytest.approx(second["score"], abs=1e-5)
    assert verify(client, link, label=second["index"], steps=4).json()["label"] == second["label"]


@pytest.mark.parametrize("path", ["verify?steps=64&random_orders=32", "cover?share=0.5&random_sets=200"])
def test_the_deadline_of_the_request_holds(client, link, path):
    late = client.post(f"{link}/{path}&fill=blur", headers={"X-Request-Timeout": "0.05"})
    assert (late.status_code, late.json()["type"]) == (503, "urn:vit-serve:problem:deadline-exceeded")
    assert verify(client, link, steps=4).status_code == 200
