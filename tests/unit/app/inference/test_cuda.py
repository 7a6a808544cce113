"""app/inference/cuda.py against sessions that stand in for those on a GPU: they replay by number, not by shape."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from app.bundle import KnownAnswer, Tolerance
from app.inference import cuda
from app.inference.cuda import CudaEngine
from app.inference.faults import DeviceError
from app.inference.known_answer import KnownImage, WrongAnswer
from app.settings import DEMO_BUNDLE


class FakeValue:
    """A buffer on the GPU: what is copied into it has to be of its shape."""

    def __init__(self, shape, dtype):
        self.array = np.zeros(shape, dtype)

    def update_inplace(self, data):
        assert data.shape == self.array.shape
        self.array[...] = data

    def numpy(self):
        return self.array.copy()


class FakeBinding:
    def bind_ortvalue_input(self, name, value):
        self.images = value

    def bind_ortvalue_output(self, name, value):
        self.logits = value


class FakeSession:
    """Logits are the first pixel. What a number recorded stays bound to the buffers that it was recorded with."""

    def __init__(self, provider="CUDAExecutionProvider"):
        self.provider = provider
        self.recorded = {}
        self.runs = []
        self.wrong = lambda runs: False
        self.threads = set()

    def get_providers(self):
        return [self.provider, "CPUExecutionProvider"]

    def get_inputs(self):
        return [SimpleNamespace(name="images", shape=["batch", 2, 2, 3], type="tensor(uint8)")]

    def get_outputs(self):
        return [SimpleNamespace(name="logits", shape=["batch", 1], type="tensor(float)")]

    def io_binding(self):
        return FakeBinding()

    def run_with_iobinding(self, binding, options):
        self.threads.add(threading.get_ident())
        number = options.get_run_config_entry("gpu_graph_id")
        self.runs.append(int(number))
        recorded = self.recorded.setdefault(number, binding)
        recorded.logits.array[:] = recorded.images.array[:, 0, 0, :1]
        if self.wrong(self.runs):
            recorded.logits.array[-1] += 1


@pytest.fixture
def sessions(monkeypatch):
    made = []

    def session(self, file, threads):
        made.append(FakeSession())
        return made[-1]

    monkeypatch.setattr(cuda, "_has_nvidia_driver", lambda: True)
    monkeypatch.setattr(cuda, "_on_gpu", FakeValue)
    monkeypatch.setattr(cuda, "_pin", lambda pixels: None)
    monkeypatch.setattr(cuda.ort, "preload_dlls", lambda: None, raising=False)
    monkeypatch.setattr(CudaEngine, "_session", session)
    return made


@pytest.fixture(autouse=True)
def no_maps(monkeypatch):
    """The sessions have logits alone, and nothing else is compared."""

    def of_logits(self, outputs):
        return {"logits": np.abs(outputs["logits"] - ANSWER.logits).max(axis=1) / ANSWER.logits[0]}

    monkeypatch.setattr(KnownImage, "differences", of_logits)


ANSWER = KnownAnswer(
    size=(1, 1),
    pixels=bytes([9, 8, 7]),
    logits=(9.0,),
    classes=(0,),
    sums={},
    tolerance=Tolerance(**dict.fromkeys(Tolerance.model_fields, 1e-4)),
)


def opened(max_batch: int = 4) -> CudaEngine:
    return CudaEngine(folder=DEMO_BUNDLE, image_size=(2, 2), max_batch=max_batch, known_answer=ANSWER)


def images(*values: int) -> list[np.ndarray]:
    return [np.full((2, 2, 3), value, dtype=np.uint8) for value in values]


def test_every_size_is_recorded_before_serving_under_a_number_of_its_own(sessions):
    engine = opened(max_batch=6)
    engine.warm_up()
    for session in sessions:
        assert sorted(session.recorded) == ["1", "2", "3", "4"]
        assert [session.recorded[n].images.array.shape[0] for n in "1234"] == [1, 2, 4, 6]
    assert {(row.graph, row.batch) for row in engine.latency()} == {
        (graph, batch) for graph in ("classify", "explain") for batch in (1, 2, 4, 6)
    }


def test_every_recording_is_asked_and_asked_again_after_the_last(sessions):
    engine = opened()
    engine.warm_up()
    for session in sessions:
        assert session.runs == [1, 2, 3, 1, 2, 3]
    engine.ask_once("classify", 3)
    assert len(sessions[0].runs) == 6
    engine.probe("explain")
    assert sessions[1].runs[6:] == [1]


@pytest.mark.parametrize(
    "wrong",
    [lambda runs: runs[-1] == 3, lambda runs: len(runs) > 3 and runs[-1] == 1],
    ids=["one size", "a replay that reads what a later recording has overwritten"],
)
@pytest.mark.parametrize("graph", [0, 1])
def test_a_run_that_computes_wrong_numbers_is_refused_with_its_sentence(sessions, wrong, graph):
    engine = opened()
    sessions[graph].wrong = wrong
    with pytest.raises(WrongAnswer, match=r"^The model computes wrong numbers on CUDAExecutionProvider"):
        engine.warm_up()


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_batch_is_padded_to_the_next_size_and_answered_without_the_padding(sessions, count):
    engine = opened()
    engine.warm_up()
    engine.run("classify", images(9, 9, 9, 9))
    values = list(range(1, count + 1))
    assert engine.run("classify", images(*values))["logits"].ravel().tolist() == values
    assert sorted(sessions[0].recorded) == ["1", "2", "3"]


def test_a_size_without_memory_gives_its_buffers_back(sessions):
    engine = opened()
    engine.warm_up()
    assert engine.forbid("classify", 4) == 2
    assert {size for graph, size in engine._recordings if graph == "classify"} == {1, 2}
    assert {size for graph, size in engine._recordings if graph == "explain"} == {1, 2, 4}
    assert engine.run("classify", images(7, 8))["logits"].ravel().tolist() == [7, 8]


def test_one_thread_does_it_all(sessions):
    engine = opened()
    engine.warm_up()
    engine.run("explain", images(1))
    assert sessions[1].threads == {threading.get_ident()}


def test_without_a_driver_it_is_refused(monkeypatch):
    monkeypatch.setattr(cuda, "_has_nvidia_driver", lambda: False)
    with pytest.raises(DeviceError, match="cannot use CUDA here"):
        opened()


def test_a_session_that_fell_back_is_refused(sessions, monkeypatch):
    monkeypatch.setattr(CudaEngine, "_session", lambda self, file, threads: FakeSession("CPUExecutionProvider"))
    with pytest.raises(DeviceError, match="cannot use CUDA here"):
        opened()


def test_a_session_that_cannot_be_made_or_recorded_is_refused_with_its_reason(sessions, monkeypatch):
    engine = opened()

    def failing(*_):
        raise RuntimeError("cudaErrorStreamCaptureUnsupported")

    monkeypatch.setattr(FakeSession, "run_with_iobinding", failing)
    with pytest.raises(DeviceError, match="StreamCaptureUnsupported"):
        engine.warm_up()
    monkeypatch.setattr(CudaEngine, "_session", failing)
    with pytest.raises(DeviceError, match="StreamCaptureUnsupported"):
        opened()
