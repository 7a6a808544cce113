"""app/inference/cpu.py on the demo bundle."""

import numpy as np
import pytest

from app.bundle import load_bundle
from app.inference import cpu
from app.inference.contract import Plan
from app.inference.cpu import OnnxEngine
from app.inference.gears import Gears
from app.inference.known_answer import WrongAnswer
from app.settings import DEMO_BUNDLE

MIB = 2**20
ONE, TWO = Gears(cores=1), Gears(cores=2, lanes=2)


def opened(max_batch: int = 4, gears: Gears = ONE, **options) -> OnnxEngine:
    answer = load_bundle(DEMO_BUNDLE).manifest.known_answer
    return OnnxEngine(
        folder=DEMO_BUNDLE,
        image_size=(64, 64),
        gears=gears,
        max_batch=max_batch,
        known_answer=answer,
        **options,
    )


@pytest.fixture(scope="module")
def engine() -> OnnxEngine:
    return OnnxEngine(folder=DEMO_BUNDLE, image_size=(64, 64), gears=Gears(cores=1), max_batch=4)


@pytest.fixture
def images() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, (64, 64, 3), dtype=np.uint8) for _ in range(4)]


def test_images_one_by_one_are_as_an_array(engine, images):
    expected = engine.run("explain", np.stack(images))
    found = engine.run("explain", images)
    assert found.keys() == expected.keys()
    for name in expected:
        assert np.array_equal(found[name], expected[name]), name


def test_a_smaller_batch_holds_nothing_of_the_one_before(engine, images):
    alone = [engine.run("classify", [image])["logits"][0] for image in images]
    engine.run("classify", images)
    for start in range(3):
        together = engine.run("classify", images[start : start + 2])["logits"]
        assert together == pytest.approx(np.stack(alone[start : start + 2]), abs=1e-4)


def test_answers_stay_when_the_buffer_is_used_again(engine, images):
    first = engine.run("explain", images[:2])
    before = {name: rows.copy() for name, rows in first.items()}
    engine.run("explain", images[2:])
    assert all(np.array_equal(first[name], before[name]) for name in before)


def test_one_image_is_not_copied(engine, images):
    assert np.shares_memory(engine._batch(images[:1]), images[0])


def test_warm_up_measures_each_graph():
    engine = opened(max_batch=2)
    assert engine.latency() == []
    engine.warm_up()
    measured = {(row.graph, row.batch) for row in engine.latency()}
    assert {("classify", 1), ("explain", 1)} <= measured
    assert all(row.milliseconds > 0 for row in engine.latency())
    assert engine.best_batch("classify") in (1, 2)


class Wrong:
    """A session whose outputs are altered, in batches of at least `at_least`."""

    def __init__(self, session, alter, at_least=1):
        self.session, self.alter, self.at_least, self.sizes = session, alter, at_least, []

    def get_outputs(self):
        return self.session.get_outputs()

    def run(self, names, feeds):
        size = len(feeds["images"])
        self.sizes.append(size)
        outputs = self.session.run(names, feeds)
        if size >= self.at_least:
            self.alter(dict(zip(names, outputs, strict=True)))
        return outputs


def off(outputs):
    outputs["logits"] *= 1.01


def last_row(outputs):
    outputs["logits"][-1] *= 1.01


def turned(outputs):
    if "attention" in outputs:
        outputs["attention"][:] = outputs["attention"][..., ::-1].copy()


def sabotage(engine, graph, alter, at_least=1, gear="wide") -> Wrong:
    engine._sessions[graph, gear] = Wrong(engine._sessions[graph, gear], alter, at_least)
    return engine._sessions[graph, gear]


@pytest.mark.parametrize("graph", ["classify", "explain"])
def test_a_session_that_computes_wrong_numbers_never_becomes_warm(graph):
    engine = opened()
    sabotage(engine, graph, off)
    with pytest.raises(WrongAnswer, match=f"wrong numbers on CPUExecutionProvider.*logits of the {graph} graph"):
        engine.warm_up()


def test_nor_does_one_whose_maps_are_turned():
    engine = opened()
    sabotage(engine, "explain", turned)
    with pytest.raises(WrongAnswer, match="attention of the explain graph"):
        engine.warm_up()


def test_nor_does_one_that_is_wrong_in_one_row_of_larger_batches(monkeypatch):
    engine = opened()
    monkeypatch.setattr(cpu, "WARM_UP_S", 10.0)
    monkeypatch.setattr("app.inference.latency.THROUGHPUT_RATIO", 0.0)  # 1 is enough, so 2 is tried and no more
    sabotage(engine, "classify", last_row, at_least=2)
    with pytest.raises(WrongAnswer, match=r"image 2 of a batch of 2"):
        engine.warm_up()


def test_a_size_that_is_first_used_while_serving_is_asked_once_before(images, monkeypatch):
    monkeypatch.setattr(cpu, "WARM_UP_S", 0.0)
    engine = opened()
    engine.warm_up()
    watched = sabotage(engine, "explain", last_row, at_least=5)
    engine.ask_once("explain", 1)
    assert watched.sizes == []
    engine.ask_once("explain", 3)
    engine.ask_once("explain", 4)
    assert watched.sizes == [4]
    watched.at_least = 2
    with pytest.raises(WrongAnswer, match=r"image 2 of a batch of 2"):
        engine.ask_once("explain", 2)
    with pytest.raises(WrongAnswer):
        engine.ask_once("explain", 2)  # what was answered wrongly has not been asked


@pytest.mark.parametrize("graph", ["classify", "explain"])
def test_both_gears_give_the_same_numbers(images, graph):
    engine = opened(gears=TWO)
    wide, narrow = (engine.run(graph, images, gear) for gear in ("wide", "narrow"))
    for name in wide:
        assert narrow[name] == pytest.approx(wide[name], abs=1e-4), name


@pytest.mark.parametrize("graph", ["classify", "explain"])
def test_each_gear_is_asked_before_it_is_first_used(monkeypatch, graph):
    monkeypatch.setattr(cpu, "WARM_UP_S", 0.0)
    engine = opened(gears=TWO)
    engine.warm_up()
    assert {row.gear for row in engine.latency()} == {"wide"}
    sabotage(engine, graph, off, gear="narrow")
    engine.ask_once(graph, 1)
    with pytest.raises(WrongAnswer):
        engine.ask_once(graph, 1, "narrow")
    with pytest.raises(WrongAnswer):
        engine.probe(graph)


def test_warm_up_measures_both_gears_where_there_is_time(monkeypatch):
    monkeypatch.setattr(cpu, "WARM_UP_S", 10.0)
    engine = opened(max_batch=1, gears=TWO)
    engine.warm_up()
    assert [(row.graph, row.gear, row.batch) for row in engine.latency()] == [
        (graph, gear, 1) for gear in ("wide", "narrow") for graph in ("classify", "explain")
    ]


def test_memory_that_is_short_makes_batches_smaller_in_both_gears(images):
    engine = opened(gears=TWO)
    assert engine.forbid("classify", 4) == 2
    for gear in TWO.runs:
        for _ in range(3):
            engine.run("classify", images[:2], gear)
    running = [Plan("wide", 1)]
    assert engine.plan("classify", waiting=50, running=[]).images <= 2
    assert engine.plan("classify", waiting=1, running=running).images == 1


def test_a_plan_has_as_many_images_as_pay_in_its_gear(monkeypatch):
    monkeypatch.setattr("app.inference.latency.LatencyModel.best", property(lambda model: model.sizes[-1]))
    engine = opened(gears=TWO)
    assert engine.plan("classify", waiting=2, running=[]) == Plan("wide", 2)
    assert engine.plan("classify", waiting=20, running=[]) == Plan("narrow", 4)


@pytest.mark.parametrize(
    ("wide", "narrow", "gear"), [(2.0, 1.0, "narrow"), (1.0, 2.0, "wide"), (1.0, 0.0, "wide")], ids=str
)
def test_a_lone_image_runs_in_the_gear_that_answers_it_sooner(monkeypatch, wide, narrow, gear):
    """Where one of them was not measured at warm-up, on all cores."""
    engine = opened(gears=TWO)
    seconds = {"wide": wide, "narrow": narrow}
    monkeypatch.setattr(engine, "expected", lambda graph, images, gear="wide": seconds[gear])
    engine.warm_up()
    assert engine.plan("classify", waiting=1, running=[]) == Plan(gear, 1)


@pytest.mark.parametrize("graph", ["classify", "explain"])
def test_a_probe_asks_one_image_and_is_no_measurement(images, graph):
    engine = opened()
    engine.run("classify" if graph == "explain" else "explain", images)
    engine.probe(graph)
    assert (graph, 1) not in {(row.graph, row.batch) for row in engine.latency()}
    assert 0 < engine.deviation()[graph] < 1
    watched = sabotage(engine, graph, off)
    with pytest.raises(WrongAnswer):
        engine.probe(graph)
    assert watched.sizes == [1]


@pytest.fixture
def growing(monkeypatch):
    """A process that has 50 MiB before its first run; an image adds 10 MiB to each graph."""
    sizes: dict[str, int] = {}
    run = OnnxEngine.run

    def remembered(self, graph, images, gear):
        sizes[graph] = max(sizes.get(graph, 0), len(images))
        return run(self, graph, images, gear)

    monkeypatch.setattr(OnnxEngine, "run", remembered)
    monkeypatch.setattr(cpu, "resident_memory", lambda: (50 + 10 * sum(sizes.values())) * MIB)
    return sizes


@pytest.mark.parametrize(
    ("allowed", "largest", "level", "said"),
    [
        (210, 4, "INFO", "needs about 210 MiB for batches of 4, and 210 MiB are left"),
        (209, 2, "WARNING", "at most 2 images, because the model would need about 210 MiB for 4, and 209 MiB"),
        (100, 1, "WARNING", "at most 1 images"),
        (80, 1, "WARNING", "needs about 90 MiB for single images, and 80 MiB are left"),
    ],
)
def test_batches_that_the_memory_does_not_hold_are_never_run(
    growing, monkeypatch, caplog, allowed, largest, level, said
):
    monkeypatch.setattr(cpu, "WARM_UP_S", 10.0)
    monkeypatch.setattr("app.inference.latency.LatencyModel.best", property(lambda model: model.sizes[-1]))
    engine = opened(max_memory=allowed * MIB)
    with caplog.at_level("INFO"):
        engine.warm_up()
    assert growing == {"classify": largest, "explain": largest}
    assert engine.best_batch("classify") == engine.best_batch("explain") == largest
    (line,) = [line for line in caplog.records if line.message.startswith("memory:")]
    assert (line.levelname, said in line.message) == (level, True), line.message


def test_weights_that_the_memory_does_not_hold_are_said_before_the_sessions_are_made(monkeypatch, caplog):
    """The kernel ends such a process while they are made, and nothing that comes later is ever logged."""

    def ended(engine, file, threads):
        raise MemoryError

    monkeypatch.setattr(OnnxEngine, "_session", ended)
    with pytest.raises(MemoryError):
        opened(max_memory=9 * MIB)
    assert "memory: the weights alone take 9 MiB, and 9 MiB are left for the model" in caplog.text


def test_weights_that_the_memory_holds_are_not_mentioned(caplog):
    opened(max_memory=10 * MIB)
    assert "memory:" not in caplog.text
