"""GET /metrics and `Server-Timing` of the whole service."""

import re
from collections import Counter

import pytest
from prometheus_client.parser import text_string_to_metric_families


def samples(client) -> Counter:
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    families = text_string_to_metric_families(answer.text)
    return Counter({(s.name, *sorted(s.labels.items())): s.value for family in families for s in family.samples})


@pytest.fixture
def counted(client):
    """How often something was counted since the test began: `counted("vit_problems_total", kind="not-found")`."""
    before = samples(client)
    return lambda name, **labels: (samples(client) - before)[name, *sorted(labels.items())]


def test_the_info_metric_names_the_model(client):
    (info,) = (dict(labels) for name, *labels in samples(client) if name == "vit_model_info")
    assert (info["provider"], info["precision"]) == ("OpenVINO", "fp32")
    assert info["digest"] == client.get("/model").json()["digest"]
    assert info["version"] == client.get("/openapi.json").json()["info"]["version"]


def test_an_image_goes_through_every_stage(client, counted, star):
    answer = client.post("/classify", content=star)
    stages = re.findall(r"(\w+);dur=\d+\.\d\d(?:, |$)", answer.headers["server-timing"])
    assert stages == ["receive", "decode", "queue", "inference", "store"]
    assert counted("vit_batch_images_sum", graph="explain") == 0
    link = answer.json()["results"][0]["attention"]
    for stages in (["store", "queue", "inference", "render"], ["store", "render"]):  # the first look makes the maps
        drawn = client.get(link)
        assert re.findall(r"(\w+);dur", drawn.headers["server-timing"]) == stages
    for stage, times in {"receive": 1, "decode": 1, "queue": 2, "inference": 2, "store": 5, "render": 2}.items():
        assert counted("vit_stage_seconds_count", stage=stage) == times, stage
    for graph in ("classify", "explain"):
        assert counted("vit_batch_images_sum", graph=graph) == 1, graph
    assert counted("vit_requests_total", method="POST", route="/classify", status="200") == 1
    assert counted("vit_requests_total", method="GET", route="/attention/{id}", status="200") == 2


def test_images_are_counted_by_outcome(client, counted, star):
    client.post("/classify", files=[("image", star), ("image", b"junk")])
    client.post("/classify", content=b"\xff\xd8\xff broken")
    for outcome in ("classified", "unsupported-type", "unusable-image"):
        assert counted("vit_images_total", outcome=outcome) == 1, outcome


def test_an_images_most_likely_label_and_its_score_are_counted(client, counted, star):
    for path in ("/classify", "/embed", "/attention"):
        client.post(path, files=[("image", star)])
    assert counted("vit_top_labels_total", label="star") == counted("vit_top_score_count") == 3
    assert counted("vit_top_score_bucket", le="0.9") == 0


def test_images_of_a_client_that_disconnects_are_counted(client, counted, star, hang_up):
    assert hang_up(client.app, "/classify", star) == []
    assert counted("vit_images_total", outcome="abandoned") == 1
