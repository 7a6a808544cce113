"""app/inference/model.py: no run is answered by an engine that computes wrong numbers, what a run is expected to take,
and which batch size pays.
"""

import pytest

from app.bundle import GRAPHS
from app.inference import model as module
from app.inference.engine import Engine
from app.inference.known_answer import WrongAnswer
from app.inference.model import Latency, Model
from app.settings import DEMO_BUNDLE
from tests.support.engines import Watched, engine_of, model_of


@pytest.fixture(scope="module")
def engine() -> Engine:
    return engine_of(DEMO_BUNDLE, "openvino", side_by_side=2)


@pytest.fixture
def watched(engine) -> Watched:
    return Watched(engine)


@pytest.fixture
def model(watched) -> Model:
    return model_of(DEMO_BUNDLE, watched)


def off(outputs):
    outputs["logits"] *= 1.01


def turned(graph, outputs, beside):
    if "attention" in outputs:
        outputs["attention"][:] = outputs["attention"][..., ::-1].copy()


@pytest.mark.parametrize(
    ("alter", "words"),
    [
        (lambda graph, outputs, beside: graph == "classify" and not beside and off(outputs), "logits of the classify"),
        (lambda graph, outputs, beside: beside and off(outputs), "logits of the classify graph"),
        (lambda graph, outputs, beside: graph == "explain" and off(outputs), "logits of the explain graph"),
        (turned, "attention of the explain graph"),
    ],
)
def test_an_engine_that_computes_wrong_numbers_never_becomes_warm(model, watched, alter, words):
    watched.after = alter
    with pytest.raises(WrongAnswer, match=f"wrong numbers on {watched.provider}.*{words}"):
        model.warm_up()


def test_runs_beside_others_are_measured_as_so_many_images_at_once(model, images):
    model.warm_up()
    on_all_cores, on_its_share = (model.run("classify", images[:1], beside=beside) for beside in (False, True))
    assert on_all_cores.keys() == on_its_share.keys()
    for name, rows in on_all_cores.items():
        assert rows == pytest.approx(on_its_share[name], abs=1e-4), name
    shared = {(graph, size) for graph in ("classify", "tokens") for size in (1, 2)}
    assert {(row.graph, row.batch) for row in model.latency()} == {*shared, ("explain", 1)}
    assert {model.best_batch(graph) for graph in GRAPHS} == {2}
    assert model.expected("classify", beside=True) == model.expected("classify", 2)


def test_an_engine_without_runs_side_by_side_has_batches_as_large_as_pays(watched, monkeypatch):
    watched.side_by_side = 1
    watched.warm_up = lambda check: [check(graph, size) for graph in GRAPHS for size in (4, 2, 1)]
    monkeypatch.setattr(module.Latency, "best", lambda latency: 2)
    model = model_of(DEMO_BUNDLE, watched)
    model.warm_up()
    assert model.largest == dict.fromkeys(GRAPHS, 2)
    assert model.best_batch("explain") == 2


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_probe_asks_one_image_as_others_are_run_and_is_no_measurement(model, watched, graph):
    watched.after = lambda graph, outputs, beside: beside and off(outputs)
    model.probe(graph)
    assert watched.runs == [(graph, 1)]
    assert model.latency() == []
    assert 0 < model.known.largest[graph] < 1
    if graph == "classify":
        with pytest.raises(WrongAnswer):
            model.probe(graph, beside=True)


def test_a_probe_replaces_an_expectation_that_is_too_high(model, monkeypatch):
    """Else no image would be run any more whose deadline is sooner than the next run is expected to end."""
    with monkeypatch.context() as slow:
        seconds = iter(range(0, 10_000, 60))
        slow.setattr(module.time, "perf_counter", lambda: next(seconds))
        model.warm_up()
    assert model.expected("classify") >= 60
    model.probe("classify")
    assert model.expected("classify") < 60
    assert model.expected("explain") >= 60


def measured(seconds: dict[int, float]) -> Latency:
    latency = Latency()
    for size, value in seconds.items():
        latency.add(size, 99.0)  # the first run of a size does not count
        latency.add(size, value)
    return latency


@pytest.mark.parametrize(
    ("seconds", "best"),
    [
        ({1: 1.0}, 1),
        ({1: 1.0, 2: 1.92}, 1),  # less than 5 %
        ({8: 5.9, 4: 2.9, 2: 1.5, 1: 1.0}, 2),  # 8 is the best, 2 within 5 % of it
        ({1: 1.0, 2: 1.1, 4: 1.3, 8: 1.7}, 8),  # as on a GPU
        ({1: 1.0, 2: 1.5, 4: 9.0}, 2),  # larger ones can be worse
    ],
)
def test_the_best_is_the_smallest_within_five_percent(seconds, best):
    assert measured(seconds).best() == best


def test_the_mean_follows_slowly():
    latency = measured({1: 1.0})
    latency.add(1, 2.0)
    assert latency.seconds == {1: pytest.approx(1.1)}
    for _ in range(100):
        latency.add(1, 2.0)
    assert latency.seconds == {1: pytest.approx(2.0, abs=1e-3)}


def test_a_run_during_a_pause_of_the_machine_counts_as_twice_the_mean():
    """Else no image would be run any more whose deadline is sooner than the next run is expected to end."""
    latency = measured({1: 1.0})
    latency.add(1, 36_000.0)
    assert latency.expected(1) == pytest.approx(1.1)
    latency.add(2, 1.5)
    latency.add(2, 36_000.0)
    assert latency.expected(2) == 1.5


@pytest.mark.parametrize(("batch", "seconds"), [(1, 1.0), (2, 1.5), (3, 2.5), (4, 2.5), (8, 5.0)])
def test_a_run_is_expected_to_take_what_the_next_size_took(batch, seconds):
    assert measured({1: 1.0, 2: 1.5, 4: 2.5}).expected(batch) == seconds
    assert measured({}).expected(batch) == 0
