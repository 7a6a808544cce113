"""app/inference/device.py: which engine is used where others do not work."""

import math
import threading
from types import SimpleNamespace

import pytest

from app.bundle import Bundle, load_bundle
from app.inference import cuda, device, onnxruntime, openvino
from app.inference.device import open_model
from app.inference.engine import DeviceError
from app.inference.known_answer import WrongAnswer
from app.inference.model import Model
from app.settings import DEMO_BUNDLE, Settings
from tests.support.engines import Watched


@pytest.fixture(autouse=True)
def no_cuda(monkeypatch):
    def broken(**_):
        raise DeviceError("no driver")

    monkeypatch.setattr(cuda, "CudaEngine", broken)


def opened(name: str = "cpu", *, max_memory: float = math.inf, **options) -> Model:
    settings = Settings(device=name, max_batch=2, **options)
    return open_model(settings=settings, bundle=load_bundle(DEMO_BUNDLE), max_memory=max_memory)


@pytest.mark.parametrize("name", ["auto", "cpu"])
@pytest.mark.parametrize(
    ("engine", "provider"),
    [("auto", "OpenVINO"), ("openvino", "OpenVINO"), ("onnxruntime", "CPUExecutionProvider")],
)
def test_the_cpu_is_used_and_warm(name, engine, provider, caplog):
    caplog.set_level("INFO")
    model = opened(name, engine=engine)
    assert model.engine.provider == provider
    assert model.expected("explain", 1) > 0
    assert f"the model runs on {provider}, in fp32" in caplog.text


@pytest.mark.parametrize("name", ["auto", "cpu"])
def test_the_cpu_is_opened_before_the_checksums_are_computed(monkeypatch, name):
    on_cpu = threading.Event()

    class SlowBundle(Bundle):
        def check_files(self):
            assert on_cpu.wait(10)

    opened = SimpleNamespace(engine=SimpleNamespace(provider="", computes_in=""))
    monkeypatch.setattr(device, "_on_cpu", lambda *_, **__: on_cpu.set() or opened)
    read = load_bundle(DEMO_BUNDLE)
    bundle = SlowBundle(folder=read.folder, manifest=read.manifest, digest=read.digest)
    open_model(settings=Settings(device=name), bundle=bundle)


def test_cuda_is_not_replaced_by_the_cpu():
    with pytest.raises(DeviceError, match="no driver"):
        opened("cuda")


@pytest.mark.parametrize(
    ("driver", "said"),
    [
        (True, ("WARNING", "no driver; the CPU is used instead")),
        (False, ("INFO", "found no NVIDIA GPU, so the CPU is used")),
    ],
)
def test_a_gpu_that_is_not_used_is_a_warning_and_none_is_no_fault(monkeypatch, tmp_path, caplog, driver, said):
    monkeypatch.setattr(device, "NVIDIA_DRIVER", tmp_path if driver else tmp_path / "none")
    with caplog.at_level("INFO"):
        opened("auto")
    assert [(line.levelname, line.message) for line in caplog.records] == [
        said,
        ("INFO", "the model runs on OpenVINO, in fp32"),
    ]


@pytest.fixture
def no_openvino(monkeypatch):
    monkeypatch.setattr(device, "find_spec", lambda name: None)


@pytest.fixture
def failing_openvino(monkeypatch):
    def failing(**_):
        raise RuntimeError("Check 'ok' failed at src/core.cpp:1")

    monkeypatch.setattr(openvino, "OpenVinoEngine", failing)


@pytest.fixture
def openvino_that_fails_in_a_run(monkeypatch):
    real = openvino.OpenVinoEngine

    def failing(graph, images):
        raise RuntimeError("could not create a primitive")

    monkeypatch.setattr(openvino, "OpenVinoEngine", lambda **options: Watched(real(**options), before=failing))


@pytest.fixture
def wrong_openvino(monkeypatch):
    real = openvino.OpenVinoEngine

    def wrong(graph, outputs):
        outputs["logits"] *= 1.01

    monkeypatch.setattr(openvino, "OpenVinoEngine", lambda **options: Watched(real(**options), after=wrong))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("no_openvino", "OpenVINO is not installed"),
        ("failing_openvino", "OpenVINO cannot run this bundle (Check 'ok' failed at src/core.cpp:1)"),
        ("openvino_that_fails_in_a_run", "OpenVINO cannot run this bundle (could not create a primitive)"),
        (
            "wrong_openvino",
            "The model computes wrong numbers on OpenVINO: for the bundle's known image, logits of ",
        ),
    ],
)
def test_an_openvino_that_does_not_work_is_replaced_by_onnx_runtime_unless_it_was_asked_for(request, caplog, how, said):
    request.getfixturevalue(how)
    assert opened(engine="auto").engine.provider == "CPUExecutionProvider"
    (line,) = [line.message for line in caplog.records if line.levelname == "WARNING"]
    assert line.startswith(said)
    assert line.endswith("; ONNX Runtime is used instead")
    with pytest.raises(DeviceError) as refused:
        opened(engine="openvino")
    assert str(refused.value).startswith(said)


@pytest.fixture
def wrong_cuda(monkeypatch, tmp_path):
    def wrong(**_):
        raise WrongAnswer("The model computes wrong numbers on CUDA")

    monkeypatch.setattr(cuda, "CudaEngine", wrong)
    monkeypatch.setattr(device, "NVIDIA_DRIVER", tmp_path / "none")


def test_a_gpu_that_computes_wrong_numbers_is_replaced_with_a_warning(wrong_cuda, caplog):
    assert opened("auto").engine.provider == "OpenVINO"
    said = "The model computes wrong numbers on CUDA; the CPU is used instead"
    assert [line.levelname for line in caplog.records if line.message == said] == ["WARNING"]


def test_a_gpu_that_computes_wrong_numbers_is_refused_where_it_was_asked_for(wrong_cuda):
    with pytest.raises(WrongAnswer, match="wrong numbers on CUDA"):
        opened("cuda")


@pytest.fixture
def asked_of_cuda(monkeypatch):
    """What the engine for a GPU was opened with. It then does not work."""
    asked = {}

    def opened(**options):
        asked.update(options)
        raise DeviceError("no driver")

    monkeypatch.setattr(cuda, "CudaEngine", opened)
    return asked


@pytest.mark.parametrize(("max_batch", "on_gpu", "on_cpu"), [(0, 64, 8), (3, 3, 3)])
def test_the_largest_batch_is_that_of_the_device_unless_it_is_set(asked_of_cuda, max_batch, on_gpu, on_cpu):
    settings = Settings(device="auto", max_batch=max_batch)
    assert open_model(settings=settings, bundle=load_bundle(DEMO_BUNDLE)).max_batch == on_cpu
    assert asked_of_cuda["max_batch"] == on_gpu


def test_gpu_and_its_memory_are_those_of_the_settings(asked_of_cuda):
    opened("auto", gpu=3, gpu_memory_bytes=2**30)
    assert (asked_of_cuda["gpu"], asked_of_cuda["memory_bytes"]) == (3, 2**30)


def in_precision(precision: str) -> Bundle:
    bundle = load_bundle(DEMO_BUNDLE)
    manifest = bundle.manifest.model_copy(update={"precision": precision})
    return Bundle(folder=bundle.folder, manifest=manifest, digest=bundle.digest)


@pytest.mark.parametrize("precision", ["int8", "bf16"])
def test_a_bundle_for_cpus_is_refused_on_a_gpu_with_the_reason(asked_of_cuda, precision):
    said = rf"^This bundle is in {precision}, which only CPUs compute here: export it in fp16"
    with pytest.raises(DeviceError, match=said):
        open_model(settings=Settings(device="cuda"), bundle=in_precision(precision))
    assert asked_of_cuda == {}


def test_a_bundle_for_cpus_is_served_by_the_cpu_beside_a_gpu(asked_of_cuda, monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(device, "NVIDIA_DRIVER", tmp_path)
    model = open_model(settings=Settings(device="auto"), bundle=in_precision("int8"))
    assert model.engine.provider == "OpenVINO"
    assert "export it in fp16; the CPU is used instead" in caplog.text


@pytest.mark.parametrize(("engine", "kind"), [("openvino", openvino), ("onnxruntime", onnxruntime)])
def test_weights_that_the_memory_does_not_hold_are_said_before_the_engine_is_opened(monkeypatch, caplog, engine, kind):
    """The kernel ends such a process meanwhile, and nothing that comes later is ever logged."""

    def ended(**_):
        raise MemoryError

    monkeypatch.setattr(kind, {"openvino": "OpenVinoEngine", "onnxruntime": "OnnxEngine"}[engine], ended)
    with pytest.raises(MemoryError):
        opened(engine=engine, max_memory=4 * 2**20)
    assert "memory: the weights alone take 4 MiB, and 4 MiB are left for the model" in caplog.text


def test_weights_that_the_memory_holds_are_not_mentioned(caplog):
    opened(max_memory=2**40)
    assert "WARNING" not in {line.levelname for line in caplog.records}
