"""app/inference/openvino.py and onnxruntime.py on the demo bundle: what holds for every engine of a CPU."""

import numpy as np
import pytest

from app.inference.engine import CpuEngine, Engine
from app.settings import DEMO_BUNDLE
from tests.support.engines import ARRANGEMENTS, engine_of
from tests.support.openvino_faults import FAULTS


@pytest.fixture(scope="module", params=ARRANGEMENTS)
def engine(request) -> Engine:
    return engine_of(DEMO_BUNDLE, request.param)


@pytest.mark.parametrize("graph", ["classify", "explain"])
def test_an_image_is_answered_the_same_in_any_batch_and_order(engine, images, graph):
    alone = [engine.run(graph, [image]) for image in images]
    for order in ([0, 1, 2, 3], [3, 1], [2, 0, 1]):
        together = engine.run(graph, [images[index] for index in order])
        for name, rows in together.items():
            assert len(rows) == len(order)
            expected = np.concatenate([alone[index][name] for index in order])
            assert rows == pytest.approx(expected, abs=1e-4), name


def test_answers_stay_in_later_runs(engine, images):
    first = engine.run("explain", images[:2])
    before = {name: rows.copy() for name, rows in first.items()}
    engine.run("explain", images[2:])
    assert all(np.array_equal(first[name], before[name]) for name in before)


def test_one_image_is_not_copied(images):
    class Seeing(CpuEngine):
        layout = {"classify": {}, "explain": {}}  # noqa: RUF012
        takes_directions = False

        def _rows(self, inputs, *, beside):
            assert np.shares_memory(inputs["images"], images[0])
            return np.zeros((1, 0), np.float32)

    assert Seeing().run("classify", images[:1]) == {}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_form_of_the_graphs_gives_the_right_numbers(fault):
    _, form = FAULTS[fault]
    assert form.wrong() == 0
