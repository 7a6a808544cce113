"""app/inference/cuda/engine.py against sessions that stand in for those on a GPU, which replay by number, not shape."""

from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from app.inference.cuda import engine as module
from app.inference.cuda import recording
from app.inference.cuda.engine import CudaEngine
from app.inference.engine import DeviceError
from app.inference.known_answer import WrongAnswer
from app.inference.model import Model
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
        setattr(self, name, value)

    bind_ortvalue_output = bind_ortvalue_input


class FakeSession:
    """Logits are the first pixel, classes those asked for. What a number recorded stays bound to the buffers that it
    was recorded with; -1 is a run node by node.
    """

    def __init__(self, provider="CUDAExecutionProvider"):
        self.provider = provider
        self.recorded = {}
        self.released = []
        self.runs = []
        self.largest = 512
        self.wrong = lambda runs: False

    def get_providers(self):
        return [self.provider, "CPUExecutionProvider"]

    def get_inputs(self):
        return [
            SimpleNamespace(name="images", shape=["batch", 2, 2, 3], type="tensor(uint8)"),
            SimpleNamespace(name="asked", shape=["batch", 2], type="tensor(int64)"),
        ]

    def get_outputs(self):
        return [
            SimpleNamespace(name="logits", shape=["batch", 1], type="tensor(float)"),
            SimpleNamespace(name="classes", shape=["batch", 2], type="tensor(int64)"),
        ]

    def io_binding(self):
        return FakeBinding()

    def run_with_iobinding(self, binding, options):
        number = int(options.get_run_config_entry("gpu_graph_id"))
        self.runs.append(number)
        if len(binding.images.array) > self.largest:
            raise RuntimeError("Available memory of 1 is smaller than requested bytes of 2")
        used = binding if number == -1 else self.recorded.setdefault(number, binding)
        used.logits.array[:] = used.images.array[:, 0, 0, :1]
        used.classes.array[:] = used.asked.array
        if self.wrong(self.runs):
            used.logits.array[-1] += 1

    def release_captured_graph(self, number):
        self.recorded.pop(number, None)
        self.released.append(number)


@pytest.fixture
def sessions(monkeypatch):
    sessions = []

    def session(self, file):
        sessions.append(FakeSession())
        return sessions[-1]

    monkeypatch.setattr(module, "count_gpus", lambda: 1)
    monkeypatch.setattr(recording, "_on_gpu", FakeValue)
    monkeypatch.setattr(module.ort, "preload_dlls", lambda: None, raising=False)
    monkeypatch.setattr(CudaEngine, "_session", session)
    return sessions


class Known:
    """Stands in for the known image. Its logit is the first pixel, and there are no maps."""

    pixels = np.array([[[9, 8, 7], [1, 2, 3]]] * 2, np.uint8)

    def inputs(self, count):
        return np.stack([self.pixels] * count), ()

    def check(self, graph, outputs, *, provider):
        if (outputs["logits"] != 9).any():
            raise WrongAnswer(f"Wrong numbers on {provider}")


def engine_of(max_batch: int = 4, *, precision: str = "fp32", **options) -> CudaEngine:
    layout = dict.fromkeys(("classify", "explain"), ())
    return CudaEngine(folder=DEMO_BUNDLE, layout=layout, max_batch=max_batch, precision=precision, **options)


def opened(max_batch: int = 4, **options) -> Model:
    return Model(engine=engine_of(max_batch, **options), known=Known())


def warmed(max_batch: int = 4, **options) -> Model:
    model = opened(max_batch, **options)
    model.warm_up()
    return model


def images(*values: int) -> list[np.ndarray]:
    return [np.full((2, 2, 3), value, dtype=np.uint8) for value in values]


def test_every_size_is_recorded_the_largest_first_and_then_compared_with_a_plain_run_and_checked_again(sessions):
    model = warmed(max_batch=6)
    for session in sessions:
        assert session.runs == [6, 4, 2, 1, -1, 6, 6, -1, 4, 4, -1, 2, 2, -1, 1, 1]
        assert {number: len(run.images.array) for number, run in session.recorded.items()} == {1: 1, 2: 2, 4: 4, 6: 6}
    assert {(row.graph, row.batch) for row in model.latency()} == {
        (graph, batch) for graph in ("classify", "explain") for batch in (1, 2, 4, 6)
    }


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_batch_is_padded_to_the_next_size_and_answered_without_the_padding_or_another_check(sessions, count):
    model = warmed()
    model.engine.run("classify", images(9, 9, 9, 9))
    ran, values = len(sessions[0].runs), list(range(1, count + 1))
    assert model.run("classify", images(*values))["logits"].ravel().tolist() == values
    assert sessions[0].runs[ran:] == [{1: 1, 2: 2, 3: 4, 4: 4}[count]]
    assert sorted(sessions[0].recorded) == [1, 2, 4]


@pytest.mark.parametrize(
    "wrong",
    [lambda runs: runs[-1] == 4, lambda runs: len(runs) > 3 and runs[-2:] == [1, 1]],
    ids=["one size", "a replay that reads what a later recording has overwritten"],
)
@pytest.mark.parametrize("graph", [0, 1])
def test_a_run_that_computes_wrong_numbers_is_refused_with_its_sentence(sessions, wrong, graph):
    model = opened()
    sessions[graph].wrong = wrong
    with pytest.raises(WrongAnswer, match=r"^Wrong numbers on CUDAExecutionProvider$"):
        model.warm_up()


def test_a_replay_that_exchanges_images_is_refused(sessions, monkeypatch):
    """The known answer does not notice it: there all images are the same."""
    model = opened()
    run = FakeSession.run_with_iobinding

    def turned(session, binding, options):
        run(session, binding, options)
        if options.get_run_config_entry("gpu_graph_id") == "4":
            binding.logits.array[:] = binding.logits.array[::-1].copy()

    monkeypatch.setattr(FakeSession, "run_with_iobinding", turned)
    sentence = r"^The model .* logits of the classify graph differs by .* between a recorded run of 4 images and a run"
    with pytest.raises(WrongAnswer, match=sentence):
        model.warm_up()


def test_sizes_that_do_not_fit_into_the_gpu_are_left_out(sessions, caplog):
    model = opened(max_batch=8)
    sessions[1].largest = 2
    model.warm_up()
    assert {size for graph, size in model.engine._recordings if graph == "explain"} == {1, 2}
    assert {size for graph, size in model.engine._recordings if graph == "classify"} == {1, 2, 4, 8}
    assert model.best_batch("explain") <= 2
    assert [record.message for record in caplog.records] == [
        f"the GPU has too little memory to run {size} images at once in the explain graph" for size in (8, 4)
    ]


def test_a_gpu_without_memory_for_one_image_is_refused(sessions):
    model = opened()
    sessions[0].largest = 0
    with pytest.raises(DeviceError, match=r"^The GPU has too little memory for this model \(.*smaller than requested"):
        model.warm_up()


WEIGHTS_BYTES = (DEMO_BUNDLE / "weights.bin").stat().st_size


@pytest.mark.parametrize(
    ("asked", "option", "value"),
    [
        ({"precision": "fp32"}, "use_tf32", "0"),
        ({"precision": "fp16"}, "use_tf32", "1"),
        ({}, "gpu_mem_limit", None),
        ({"memory_bytes": 2 * WEIGHTS_BYTES + 2000}, "gpu_mem_limit", "1000"),  # half of what the weights leave
    ],
)
def test_sessions_are_opened_as_the_settings_and_the_precision_say(sessions, asked, option, value):
    assert engine_of(**asked)._options.get(option) == value


@pytest.mark.parametrize("version", ["1.31.1", "1.32.0.dev20270101"])
def test_an_onnx_runtime_that_replays_rightly_is_taken(sessions, monkeypatch, version):
    monkeypatch.setattr(module.ort, "__version__", version)
    opened()


def test_outputs_stay_as_they_are_however_many_runs_follow(sessions):
    model = warmed()
    kept = [model.engine.run("classify", images(value))["logits"] for value in range(1, 10)]
    assert [rows.item() for rows in kept] == list(range(1, 10))


failing = Mock(side_effect=RuntimeError("cudaErrorStreamCaptureUnsupported"))
ON_CPU = {"app.inference.cuda.engine.CudaEngine._session": lambda self, file: FakeSession("CPUExecutionProvider")}
LACKING = "Failed to load libcudart.so.13: cannot open shared object file"


@pytest.mark.parametrize(
    ("options", "machine", "sentence"),
    [
        ({"memory_bytes": 1000}, {}, "^VIT_GPU_MEMORY_BYTES is 1000, and the weights of the 2 graphs alone take"),
        *(
            ({}, {"onnxruntime.__version__": old}, rf"^A GPU needs ONNX Runtime 1\.31\.1 or newer, and this is {old}$")
            for old in ("1.28.0", "1.31.0")
        ),
        ({}, ON_CPU, "cannot use CUDA here$"),
        (
            {},
            ON_CPU | {"onnxruntime.preload_dlls": lambda: print(LACKING)},  # noqa: T201
            r"here: libcudart\.so\.13 cannot be loaded; the extra cuda, or `make serve",
        ),
        ({}, ON_CPU | {"app.inference.cuda.engine.count_gpus": lambda: 0}, "here: the NVIDIA driver is missing"),
        ({}, {"app.inference.cuda.engine.CudaEngine._session": failing}, "StreamCaptureUnsupported"),
    ],
)
def test_a_gpu_that_cannot_be_used_is_refused_with_the_reason(sessions, monkeypatch, options, machine, sentence):
    for name, value in machine.items():
        monkeypatch.setattr(name, value, raising=name != "onnxruntime.preload_dlls")
    with pytest.raises(DeviceError, match=sentence):
        opened(**options)
