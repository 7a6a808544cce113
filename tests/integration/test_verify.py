"""POST /attention/{id}/verify and /cover on the demo model: a map is put to the test by the model that it explains."""

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


SHAPE = [27, 28, 35, 36]  # the middle of the star
PATCHES = 64


@pytest.fixture(scope="module")
def ask(client, classified):
    return lambda **params: client.post(f"{classified['attention']}/cover", params=params)


@pytest.fixture(scope="module")
def values(client, classified):
    """The numbers of a map."""
    return lambda **params: client.get(classified["attention"], params={"format": "json", **params}).json()["values"]


def listed(patches: list[int]) -> str:
    return ",".join(map(str, patches))


def test_the_effect_is_what_changes_and_the_evidence_what_the_map_says(classified, ask, values):
    answer = ask(patches=listed(SHAPE[::-1]), random_sets=8).json()
    before, after = answer["before"], answer["after"]
    assert (answer["grid"], answer["patches"], answer["map"]) == ([8, 8], SHAPE, None)
    assert [p["label"] for p in before["predictions"]] == [p["label"] for p in classified["predictions"]]
    assert before["score"] == pytest.approx(classified["predictions"][0]["score"], abs=1e-5)
    assert answer["effect"] == pytest.approx(before["logit"] - after["logit"])
    assert answer["label"] == "star"
    assert after["score"] < before["score"]
    evidence = values(method="evidence")
    assert answer["evidence"] == pytest.approx(sum(evidence[patch] for patch in SHAPE), abs=1e-5)
    assert len(answer["random_effects"]) == answer["random_sets"] == 8
    assert answer["random_effect"] == pytest.approx(sum(answer["random_effects"]) / 8)
    as_large = sum(abs(e) >= abs(answer["effect"]) for e in answer["random_effects"])
    assert answer["share_of_random_sets_as_large"] == as_large / 8


def test_a_share_is_the_top_of_the_map_on_show_and_the_rest_is_all_else(ask, values):
    rollout = values(method="rollout")
    highest = sorted(sorted(range(PATCHES), key=lambda patch: -rollout[patch])[:6])
    by_share, rest = (ask(share=0.1, method="rollout", rest=rest).json() for rest in (False, True))
    assert by_share["patches"] == highest
    assert sorted(highest + rest["patches"]) == list(range(PATCHES))
    assert by_share.pop("map")["recipe"].startswith("class token's row in the product")
    by_number = ask(patches=listed(highest)).json()
    assert by_number.pop("map") is None
    assert by_share == by_number  # its random sets too


def test_the_lead_over_a_second_label_can_be_followed(client, classified, ask, values):
    second = classified["predictions"][1]["label"]
    of_lead, of_star, of_second = (
        ask(patches=listed(SHAPE), **labels).json()
        for labels in ({"label": "star", "against": second}, {"label": "star"}, {"label": second})
    )
    assert (of_lead["label"], of_lead["against"], of_second["label"]) == ("star", second, second)
    for name in ("evidence", "effect"):
        assert of_lead[name] == pytest.approx(of_star[name] - of_second[name], abs=1e-4)
    assert of_lead["after"]["score"] == of_star["after"]["score"]
