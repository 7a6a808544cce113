"""app/inference/model.py: which batches are run, and that none is answered by an engine that computes wrong numbers."""

import time
from unittest.mock import Mock

import pytest

from app.inference import model as module
from app.inference.engine import GRAPHS, Engine, Plan
from app.inference.known_answer import WrongAnswer
from app.inference.model import Model
from app.settings import DEMO_BUNDLE
from tests.support.engines import Watched, engine_of, model_of

MIB = 2**20
PLENTY = float("inf")


@pytest.fixture(scope="module")
def engine() -> Engine:
    return engine_of(DEMO_BUNDLE, "openvino")


@pytest.fixture
def watched(engine) -> Watched:
    return Watched(engine)


@pytest.fixture
def model(watched) -> Model:
    return model_of(DEMO_BUNDLE, watched)


@pytest.fixture
def no_time(monkeypatch):
    """The warm-up runs single images alone."""
    monkeypatch.setattr(module, "WARM_UP_S", 0.0)


def off(graph, outputs):
    outputs["logits"] *= 1.01


def last_row_of(size):
    def alter(graph, outputs):
        if len(outputs["logits"]) == size:
            outputs["logits"][-1] *= 1.01

    return alter


def turned(graph, outputs):
    if "attention" in outputs:
        outputs["attention"][:] = outputs["attention"][..., ::-1].copy()


@pytest.mark.parametrize(
    ("alter", "words"),
    [
        (lambda graph, outputs: graph == "classify" and off(graph, outputs), "logits of the classify graph"),
        (lambda graph, outputs: graph == "explain" and off(graph, outputs), "logits of the explain graph"),
        (turned, "attention of the explain graph"),
        (last_row_of(2), r"image 2 of a batch of 2"),
    ],
)
def test_an_engine_that_computes_wrong_numbers_never_becomes_warm(model, watched, monkeypatch, alter, words):
    monkeypatch.setattr(module, "WARM_UP_S", 10.0)
    monkeypatch.setattr("app.inference.batch_cost.THROUGHPUT_RATIO", 0.0)  # 1 is enough, so 2 is tried and no more
    watched.after = alter
    with pytest.raises(WrongAnswer, match=f"wrong numbers on {watched.provider}.*{words}"):
        model.warm_up(PLENTY)


@pytest.mark.usefixtures("no_time", "batches_pay")
def test_the_first_run_of_a_size_is_of_the_known_image(model, watched, images):
    model.warm_up(PLENTY)
    watched.runs.clear()
    watched.after = last_row_of(4)
    for count in (2, 2, 1):
        model.run(Plan("explain", count), images[:count])
    assert watched.runs == [("explain", 2), ("explain", 2), ("explain", 2), ("explain", 1)]
    for _ in range(2):  # a wrong answer is not a check
        with pytest.raises(WrongAnswer, match="image 4 of a batch of 4"):
            model.run(Plan("explain", 4), images)


@pytest.mark.usefixtures("batches_pay")
def test_a_batch_is_of_a_size_or_where_the_engine_pads_of_all_that_wait(model, watched):
    for pads, planned in ((False, [1, 2, 4]), (True, [1, 3, 4])):
        watched.pads_batches = pads
        assert [model.plan("classify", waiting).images for waiting in (1, 3, 9)] == planned


@pytest.mark.parametrize("graph", ["classify", "explain"])
def test_a_probe_asks_one_image_and_is_no_measurement(model, watched, graph):
    model.probe(Plan(graph, 1))
    assert watched.runs == [(graph, 1)]
    assert model.latency() == []
    assert 0 < model.known.largest[graph] < 1
    watched.after = off
    with pytest.raises(WrongAnswer):
        model.probe(Plan(graph, 1))


@pytest.mark.usefixtures("no_time")
def test_a_probe_replaces_an_expectation_that_is_too_high(model, monkeypatch):
    """Else no image would be run any more whose deadline is sooner than the next run is expected to end."""
    with monkeypatch.context() as slow:
        seconds = iter(range(0, 10_000, 60))
        slow.setattr(module.time, "perf_counter", lambda: next(seconds))
        model.warm_up(PLENTY)
    assert model.expected(Plan("classify", 1)) >= 60
    model.probe(Plan("classify", 1))
    assert model.expected(Plan("classify", 1)) < 60
    assert model.expected(Plan("explain", 1)) >= 60


@pytest.fixture
def growing(watched, monkeypatch):
    """A process that has 50 MiB before its first run; an image adds 10 MiB to each graph."""
    sizes: dict[str, int] = {}
    watched.before = lambda graph, images: sizes.update({graph: max(sizes.get(graph, 0), len(images))})
    for name in ("model", "streams"):
        resident = f"app.inference.{name}.resident_memory"
        monkeypatch.setattr(resident, lambda: (50 + 10 * sum(sizes.values())) * MIB)
    monkeypatch.setattr(module, "WARM_UP_S", 10.0)
    return sizes


@pytest.mark.parametrize(
    ("allowed", "largest", "level", "words"),
    [
        (130, 4, "INFO", "needs about 130 MiB for batches of 4, and 130 MiB are left"),
        (129, 2, "WARNING", "at most 2 images, because the model would need about 130 MiB for 4, and 129 MiB"),
        (80, 1, "WARNING", "at most 1 images"),
        (60, 1, "WARNING", "needs about 70 MiB for single images, and 60 MiB are left"),
    ],
)
@pytest.mark.usefixtures("batches_pay")
def test_batches_that_the_memory_does_not_hold_are_never_run(model, growing, caplog, allowed, largest, level, words):
    with caplog.at_level("INFO"):
        model.warm_up(allowed * MIB)
    assert growing == {"classify": largest, "explain": largest}
    assert model.best_batch("classify") == model.best_batch("explain") == largest
    (line,) = [line for line in caplog.records if line.message.startswith("memory:")]
    assert (line.levelname, words in line.message) == (level, True), line.message


@pytest.fixture(scope="module")
def streamed() -> Engine:
    return engine_of(DEMO_BUNDLE, "openvino with streams")


@pytest.fixture
def streams(streamed) -> Watched:
    return Watched(streamed)


@pytest.fixture
def open_engine(streams) -> Mock:
    return Mock(return_value=streams)


@pytest.fixture
def with_streams(watched, open_engine, monkeypatch) -> Model:
    monkeypatch.setattr(module, "STREAMS_PAY_S", 0.0)
    return model_of(DEMO_BUNDLE, watched, streams=2, open_engine=open_engine, weights=30 * MIB)


@pytest.mark.usefixtures("no_time")
def test_a_model_that_takes_a_moment_runs_batches_and_has_no_streams(with_streams, watched, open_engine, monkeypatch):
    monkeypatch.setattr(module, "STREAMS_PAY_S", 60.0)
    with_streams.warm_up(PLENTY)
    assert with_streams.streams.count == 1
    assert with_streams.sizes("explain") == [1, 2, 4]
    open_engine.assert_not_called()
    assert set(watched.runs) >= {("classify", 1), ("explain", 1)}  # checked before they answer
    with_streams.run(Plan("classify", 2), *with_streams.known.inputs(2))
    assert watched.runs[-1] == ("classify", 2)


@pytest.mark.usefixtures("no_time")
def test_a_slow_first_run_does_not_decide_that_there_are_streams(with_streams, watched, monkeypatch):
    monkeypatch.setattr(module, "STREAMS_PAY_S", 0.5)
    seen = set()
    watched.before = lambda graph, images: graph in seen or seen.add(graph) or time.sleep(0.3)
    with_streams.warm_up(PLENTY)
    assert with_streams.streams.count == 1


def test_until_streams_are_open_images_are_run_one_by_one_and_then_side_by_side(with_streams, streams, watched, images):
    with_streams.warm_up(PLENTY)
    assert {size for _, size in watched.runs} == {1}
    alone, beside = Plan("classify", 1), Plan("classify", 1, streams)
    assert [with_streams.plan("classify", waiting) for waiting in (1, 5)] == [alone, alone]
    with_streams.open_streams()
    assert with_streams.plan("classify", 1) == alone
    for waiting in ({"waiting": 5}, {"waiting": 1, "running": [beside]}):
        assert with_streams.plan("classify", **waiting) == beside
    on_all_cores, on_a_stream = (with_streams.run(plan, images[:1]) for plan in (alone, beside))
    assert on_all_cores.keys() == on_a_stream.keys()
    for name, rows in on_all_cores.items():
        assert rows == pytest.approx(on_a_stream[name], abs=1e-4), name
    assert ("classify", 2) in {(row.graph, row.batch) for row in with_streams.latency()}
    assert {with_streams.best_batch(graph) for graph in GRAPHS} == {2}


def test_all_that_runs_images_is_tested_in_turn(with_streams, streams):
    with_streams.open_streams()
    tests = [with_streams.next_self_test() for _ in range(6)]
    assert tests[:3] == tests[3:]
    assert set(tests) == {Plan("classify", 1), Plan("explain", 1), Plan("classify", 1, streams)}
    streams.after = off
    with_streams.probe(Plan("classify", 1))
    with pytest.raises(WrongAnswer):
        with_streams.probe(Plan("classify", 1, streams))


def test_a_run_on_all_cores_is_alone(with_streams, streams):
    on_all_cores, on_a_stream = Plan("explain", 1), Plan("classify", 1, streams)
    with_streams.open_streams()
    assert with_streams.plan("explain", 9) == on_all_cores
    assert with_streams.plan("explain", 9, running=[on_a_stream]) is None
    assert with_streams.plan("classify", 9, running=[on_a_stream]) == on_a_stream
    assert with_streams.plan("classify", 9, running=[on_a_stream, on_all_cores]) is None
    assert with_streams.next_self_test(running=[on_a_stream]).stream_engine
    assert with_streams.next_self_test(running=[on_all_cores]) is None


def test_a_run_on_a_stream_is_expected_to_take_as_long_as_all_that_run_beside_it(with_streams, streams):
    with_streams.warm_up(PLENTY)
    assert with_streams.expected(Plan("classify", 1, streams)) >= 2 * with_streams.expected(Plan("classify", 1))


def test_streams_that_compute_wrong_numbers_are_not_kept(with_streams, streams):
    streams.after = off
    with_streams.open_streams()
    assert with_streams.streams.count == 1
    assert with_streams.plan("classify", 8) == Plan("classify", 1)


@pytest.mark.parametrize(("allowed", "count"), [(140, 2), (139, 1)])
@pytest.mark.usefixtures("growing")
def test_there_are_no_streams_without_memory_for_them(with_streams, allowed, count):
    with_streams.warm_up(allowed * MIB)
    assert with_streams.streams.count == count


@pytest.mark.usefixtures("growing")
def test_streams_that_do_not_fit_any_more_when_they_are_wanted_are_not_opened(
    with_streams, open_engine, monkeypatch, caplog
):
    with_streams.warm_up(140 * MIB)
    monkeypatch.setattr("app.inference.streams.resident_memory", lambda: 120 * MIB)
    with_streams.open_streams()
    assert not open_engine.called
    assert with_streams.plan("classify", 5) == Plan("classify", 1)
    assert "memory: streams do not fit, so images run one by one" in caplog.text
