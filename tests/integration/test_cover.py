"""POST /attention/{id}/cover on the demo model: the answer without some patches, and what their evidence promised."""

import pytest

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
