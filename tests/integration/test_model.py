"""What the service says of itself, and the model's own pictures."""

from app.settings import DEMO_BUNDLE


def test_model_says_what_is_served_how_fast_and_how_far_from_the_known_answer_it_is(client):
    answer = client.get("/model").json()
    assert (answer["name"], answer["provider"]) == ("shapes", "OpenVINO")
    assert answer["manifest"]["tokens"] == {"patch": 8, "grid": [8, 8], "prefix": ["class"]}
    assert {(row["graph"], row["batch"]) for row in answer["latency"]} >= {("classify", 1), ("explain", 1)}
    assert {row["batch"] for row in answer["latency"]} | {*answer["best_batch"].values()} <= {1, 2, 4, 8}
    assert all(row["milliseconds"] > 0 for row in answer["latency"])
    assert answer["best_batch"].keys() == answer["deviation"].keys() == {"classify", "explain", "tokens"}
    assert all(0 < share < 1 for share in answer["deviation"].values())
    assert "known_answer" not in answer["manifest"]
    figures = answer["manifest"]["figures"]
    assert figures["top1_accuracy"] >= 0.97
    assert max(figures["rollout_on_object"], figures["last_layer_on_object"]) >= 0.8


def test_a_picture_is_the_file_of_the_bundle_as_the_accept_header_wants_it_unless_the_format_is_said(client):
    url, wants_json = "/model/inspect/distance", {"accept": "application/json"}
    png, json = ((DEMO_BUNDLE / "inspect" / f"distance.{kind}").read_bytes() for kind in ("png", "json"))
    assert client.get(url, headers=wants_json).content.removesuffix(b"\n") == json
    assert client.get(url, params={"format": "png"}, headers=wants_json).content == client.get(url).content == png
    assert client.get(url, params={"format": "npy"}).status_code == 422


def test_a_picture_that_is_not_there_is_a_404_that_says_which_are(client):
    response = client.get("/model/inspect/relative_bias")
    assert (response.status_code, response.json()["type"]) == (404, "urn:vit-serve:problem:unknown-picture")
    assert all(name in response.json()["detail"] for name in client.get("/model").json()["manifest"]["inspect"])
