"""app/inference/cpu.py on the demo bundle."""

import numpy as np
import pytest

from app.inference.cpu import OnnxEngine
from app.settings import DEMO_BUNDLE


@pytest.fixture(scope="module")
def engine() -> OnnxEngine:
    return OnnxEngine(folder=DEMO_BUNDLE, image_size=(64, 64), threads=1, max_batch=4)


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
    engine = OnnxEngine(folder=DEMO_BUNDLE, image_size=(64, 64), threads=1, max_batch=2)
    assert engine.latency() == []
    engine.warm_up()
    measured = {(row.graph, row.batch) for row in engine.latency()}
    assert {("classify", 1), ("explain", 1)} <= measured
    assert all(row.milliseconds > 0 for row in engine.latency())
    assert engine.best_batch("classify") in (1, 2)


def test_a_probe_is_a_run_of_a_blank_image_and_no_measurement(images):
    engine = OnnxEngine(folder=DEMO_BUNDLE, image_size=(64, 64), threads=1, max_batch=4)
    engine.run("classify", images)
    assert np.array_equal(
        engine.probe("explain")["logits"], engine.run("explain", [np.zeros((64, 64, 3), np.uint8)])["logits"]
    )
    assert ("explain", 1) not in {(row.graph, row.batch) for row in engine.latency()}
