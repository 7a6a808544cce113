"""method=measured through the whole app: which passes are run, and what comes back."""

from io import BytesIO

import numpy as np
import pytest

from tests.support.engines import Watched

MEASURED = {"method": "measured", "format": "json"}


@pytest.fixture
def watched(client, monkeypatch) -> Watched:
    """The engine. What it ran before is forgotten."""
    model = client.app.state.services.model
    monkeypatch.setattr(model, "engine", engine := Watched(model.engine))
    return engine


@pytest.fixture
def link(client, star) -> str:
    return client.post("/classify", content=star).json()["results"][0]["attention"]


def test_passes_that_were_run_are_not_run_again(client, link, watched):
    for params, run in (({"passes": 16}, 16), ({}, 48), ({"label": "bolt"}, 0), ({"passes": 16, "format": "png"}, 0)):
        before = sum(images for _, images in watched.runs)
        answer = client.get(link, params={**MEASURED, **params})
        assert answer.status_code == 200
        assert sum(images for _, images in watched.runs) - before == run
    assert {graph for graph, _ in watched.runs} == {"classify"}


def test_the_numbers_are_the_same_every_time_and_with_both_methods(client, link, star):
    kept = client.get(link, params=MEASURED).json()
    alone = client.post("/attention", params=MEASURED, content=star).json()
    assert kept["values"] == alone["values"]
    assert kept["spread"] == alone["spread"]
    assert (kept["label"], kept["passes"], len(kept["spread"])) == ("star", 64, 64)
    assert min(kept["spread"]) > 0
    values, spread = np.load(BytesIO(client.get(link, params=MEASURED | {"format": "npy"}).content))
    for name, array in (("values", values), ("spread", spread)):
        assert np.array_equal(np.float32(kept[name]), array.ravel())


def test_a_second_label_turns_the_map(client, link):
    one, other = (
        client.get(link, params={**MEASURED, "label": label, "against": against}).json()
        for label, against in (("star", "bolt"), ("bolt", "star"))
    )
    assert one["values"] == pytest.approx([-value for value in other["values"]])
    assert (one["label"], one["against"]) == ("star", "bolt")


def test_what_is_certain_is_drawn(client, link):
    """Fading needs the spread."""
    png = client.get(link, params={"method": "measured", "passes": 16})
    unfaded = client.get(link, params={"method": "measured", "passes": 16, "fade": "false"})
    assert png.status_code == 200
    assert png.content != unfaded.content
