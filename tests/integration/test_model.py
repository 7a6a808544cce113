"""What the service says of itself."""


def test_model_says_what_is_served_and_how_fast(client):
    answer = client.get("/model").json()
    assert (answer["name"], answer["provider"]) == ("shapes", "OpenVINO")
    assert answer["manifest"]["tokens"] == {"patch": 8, "grid": [8, 8], "prefix": ["class"]}
    assert {(row["graph"], row["batch"]) for row in answer["latency"]} >= {("classify", 1), ("explain", 1)}
    assert {row["batch"] for row in answer["latency"]} | {*answer["best_batch"].values()} <= {1, 2, 4, 8}
    assert answer["best_batch"].keys() == {"classify", "explain", "tokens"}
    assert all(row["milliseconds"] > 0 for row in answer["latency"])


def test_it_says_how_far_it_is_from_the_known_answer_and_not_the_whole_answer(client):
    answer = client.get("/model").json()
    assert answer["deviation"].keys() == {"classify", "explain", "tokens"}
    assert all(0 < share < 1 for share in answer["deviation"].values())
    assert "known_answer" not in answer["manifest"]
    assert answer["manifest"]["parity"]["logits"] < 1e-4


def test_the_demo_models_figures_are_in_its_manifest(client):
    figures = client.get("/model").json()["manifest"]["figures"]
    assert figures["pictures"] == 2000
    assert figures["top1_accuracy"] >= 0.97
    assert max(figures["rollout_on_object"], figures["last_layer_on_object"]) >= 0.8
