"""app/inference/model.py: which runs are made, and that none is answered by an engine that computes wrong numbers."""

import pytest

from app.inference import model as module
from app.inference.engine import GRAPHS, Engine, Plan
from app.inference.known_answer import WrongAnswer
from app.inference.model import Model
from app.settings import DEMO_BUNDLE
from tests.support.engines import Watched, engine_of, model_of

ALONE, BESIDE, EXPLAINED = Plan("classify", 1), Plan("classify", 1, beside=True), Plan("explain", 1)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return engine_of(DEMO_BUNDLE, "openvino", side_by_side=2)


@pytest.fixture
def watched(engine) -> Watched:
    return Watched(engine)


@pytest.fixture
def model(watched) -> Model:
    return model_of(DEMO_BUNDLE, watched)


def off(plan, outputs):
    outputs["logits"] *= 1.01


def turned(plan, outputs):
    if "attention" in outputs:
        outputs["attention"][:] = outputs["attention"][..., ::-1].copy()


@pytest.mark.parametrize(
    ("alter", "words"),
    [
        (lambda plan, outputs: plan == ALONE and off(plan, outputs), "logits of the classify graph"),
        (lambda plan, outputs: plan == BESIDE and off(plan, outputs), "logits of the classify graph"),
        (lambda plan, outputs: plan == EXPLAINED and off(plan, outputs), "logits of the explain graph"),
        (turned, "attention of the explain graph"),
    ],
)
def test_an_engine_that_computes_wrong_numbers_never_becomes_warm(model, watched, alter, words):
    watched.after = alter
    with pytest.raises(WrongAnswer, match=f"wrong numbers on {watched.provider}.*{words}"):
        model.warm_up()


def test_an_image_has_all_cores_where_it_is_alone_and_its_share_beside_others(model, images):
    model.warm_up()
    assert model.plan("classify", 1) == ALONE
    for waiting in ({"waiting": 5}, {"waiting": 1, "running": [BESIDE]}):
        assert model.plan("classify", **waiting) == BESIDE
    on_all_cores, on_its_share = (model.run(plan, images[:1]) for plan in (ALONE, BESIDE))
    assert on_all_cores.keys() == on_its_share.keys()
    for name, rows in on_all_cores.items():
        assert rows == pytest.approx(on_its_share[name], abs=1e-4), name
    assert {(row.graph, row.batch) for row in model.latency()} == {("classify", 1), ("classify", 2), ("explain", 1)}
    assert {model.best_batch(graph) for graph in GRAPHS} == {2}
    assert model.expected(BESIDE) == model.expected(Plan("classify", 2))


def test_an_engine_without_runs_side_by_side_has_batches_as_large_as_pays(watched, monkeypatch):
    watched.side_by_side = 1
    watched.warm_up = lambda check: [check(Plan(graph, size)) for graph in GRAPHS for size in (4, 2, 1)]
    monkeypatch.setattr(module.Latency, "best", lambda latency: 2)
    model = model_of(DEMO_BUNDLE, watched)
    model.warm_up()
    assert [model.plan("classify", waiting) for waiting in (1, 3)] == [ALONE, Plan("classify", 2)]
    assert model.plan("classify", 3, running=[ALONE]) is None
    assert model.best_batch("explain") == 2


def test_a_run_on_all_cores_is_alone(model):
    assert model.plan("explain", 9) == EXPLAINED
    assert model.plan("explain", 9, running=[BESIDE]) is None
    assert model.plan("classify", 9, running=[BESIDE]) == BESIDE
    assert model.plan("classify", 9, running=[BESIDE, EXPLAINED]) is None
    assert model.next_self_test(running=[BESIDE]) == BESIDE
    assert model.next_self_test(running=[EXPLAINED]) is None


def test_every_way_to_run_images_is_tested_in_turn(model, watched):
    tests = [model.next_self_test() for _ in range(6)]
    assert tests[:3] == tests[3:]
    assert set(tests) == {ALONE, BESIDE, EXPLAINED}
    watched.after = lambda plan, outputs: plan == BESIDE and off(plan, outputs)
    model.probe(ALONE)
    with pytest.raises(WrongAnswer):
        model.probe(BESIDE)


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_probe_asks_one_image_and_is_no_measurement(model, watched, graph):
    model.probe(Plan(graph, 1))
    assert watched.runs == [(graph, 1)]
    assert model.latency() == []
    assert 0 < model.known.largest[graph] < 1


def test_a_probe_replaces_an_expectation_that_is_too_high(model, monkeypatch):
    """Else no image would be run any more whose deadline is sooner than the next run is expected to end."""
    with monkeypatch.context() as slow:
        seconds = iter(range(0, 10_000, 60))
        slow.setattr(module.time, "perf_counter", lambda: next(seconds))
        model.warm_up()
    assert model.expected(ALONE) >= 60
    model.probe(ALONE)
    assert model.expected(ALONE) < 60
    assert model.expected(EXPLAINED) >= 60
