"""app/inference/device.py: which engine is used where others do not work."""

import threading
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from app.bundle import Bundle, load_bundle
from app.inference import device, openvino
from app.inference.cuda import engine as cuda
from app.inference.device import open_model
from app.inference.engine import DeviceError
from app.inference.known_answer import WrongAnswer
from app.inference.model import Model
from app.settings import DEMO_BUNDLE, Settings
from tests.support.engines import Watched


@pytest.fixture(autouse=True)
def no_cuda(monkeypatch):
    engine = Mock(side_effect=DeviceError("no driver"))
    monkeypatch.setattr(cuda, "CudaEngine", engine)
    return engine


def demo_in(precision: str) -> Bundle:
    """The demo bundle, as if it were in this precision."""
    demo = load_bundle(DEMO_BUNDLE)
    manifest = demo.manifest.model_copy(update={"precision": precision})
    return Bundle(folder=demo.folder, manifest=manifest, digest=demo.digest)


def opened(name: str = "cpu", *, bundle: Bundle | None = None, **options) -> Model:
    """In ONNX Runtime unless `options` say otherwise: OpenVINO takes a second to compile the demo."""
    settings = Settings(**{"device": name, "engine": "onnxruntime", "max_batch": 2, **options})
    return open_model(settings=settings, bundle=bundle or load_bundle(DEMO_BUNDLE))


@pytest.mark.parametrize(
    ("engine", "provider"), [("auto", "OpenVINO"), ("openvino", "OpenVINO"), ("onnxruntime", "CPUExecutionProvider")]
)
def test_the_cpu_is_used_and_warm(engine, provider, caplog):
    caplog.set_level("INFO")
    model = opened(engine=engine, model_threads=1)
    assert model.engine.provider == provider
    assert model.expected("explain") > 0
    assert f"the model runs on {provider}, in fp32" in caplog.text


def test_the_cpu_is_opened_before_the_checksums_are_computed(monkeypatch):
    on_cpu = threading.Event()
    opened = SimpleNamespace(engine=SimpleNamespace(provider="", computes_in=""))
    monkeypatch.setattr(device, "_on_cpu", lambda *_, **__: on_cpu.set() or opened)
    monkeypatch.setattr(Bundle, "check_files", lambda bundle: on_cpu.wait(10) or pytest.fail("checked first"))
    open_model(settings=Settings(device="cpu"), bundle=load_bundle(DEMO_BUNDLE))


@pytest.mark.parametrize(
    ("driver", "gpus", "fault", "line"),
    [
        (True, 0, DeviceError("no driver"), ("WARNING", "no driver; the CPU is used instead")),
        (False, 1, DeviceError("no libraries"), ("WARNING", "no libraries; the CPU is used instead")),  # as in WSL 2
        (True, 1, WrongAnswer("wrong numbers"), ("WARNING", "wrong numbers; the CPU is used instead")),
        (False, 0, DeviceError("no driver"), ("INFO", "found no NVIDIA GPU, so the CPU is used")),
    ],
)
def test_a_gpu_that_is_not_used_is_a_warning_unless_it_was_asked_for_and_none_is_no_fault(
    no_cuda, monkeypatch, tmp_path, caplog, driver, gpus, fault, line
):
    no_cuda.side_effect = fault
    monkeypatch.setattr(device, "NVIDIA_DRIVER", tmp_path if driver else tmp_path / "none")
    monkeypatch.setattr(device, "count_gpus", lambda: gpus)
    with caplog.at_level("INFO"):
        opened("auto")
    said = [(record.levelname, record.message) for record in caplog.records]
    assert [each for each in said if each == line or each[0] == "WARNING"] == [line]
    assert said[-1] == ("INFO", "the model runs on CPUExecutionProvider, in fp32")
    assert no_cuda.called == (line[0] == "WARNING")
    with pytest.raises(type(fault), match=str(fault)):
        opened("cuda")


not_installed = Mock(side_effect=ImportError("No module named 'openvino'"))
refusing = Mock(side_effect=RuntimeError("Check 'ok' failed at src/core.cpp:1"))
failing_in_a_run = Mock(side_effect=RuntimeError("could not create a primitive"))


def wrong(graph, outputs, beside):
    outputs["logits"] *= 1.01


def watched_openvino(real=openvino.OpenVinoEngine, **watching):
    return lambda **options: Watched(real(**options), **watching)


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        (None, "OpenVINO is not installed"),
        (not_installed, "OpenVINO cannot run this bundle (No module named 'openvino')"),
        (refusing, "OpenVINO cannot run this bundle (Check 'ok' failed at src/core.cpp:1)"),
        (watched_openvino(before=failing_in_a_run), "OpenVINO cannot run this bundle (could not create a primitive)"),
        (
            watched_openvino(after=wrong),
            "The model computes wrong numbers on OpenVINO: for the bundle's known image, logits of ",
        ),
    ],
)
def test_an_openvino_that_does_not_work_is_replaced_by_onnx_runtime_unless_it_was_asked_for(
    monkeypatch, caplog, engine, words
):
    monkeypatch.setattr(device, "find_spec", lambda name: engine)
    monkeypatch.setattr(openvino, "OpenVinoEngine", engine)
    assert opened(engine="auto", model_threads=1).engine.provider == "CPUExecutionProvider"
    (line,) = [line.message for line in caplog.records if line.levelname == "WARNING"]
    assert line.startswith(words)
    assert line.endswith("; ONNX Runtime is used instead")
    with pytest.raises(DeviceError) as refused:
        opened(engine="openvino", model_threads=1)
    assert str(refused.value).startswith(words)


def test_an_onnx_runtime_that_does_not_work_is_named(monkeypatch):
    monkeypatch.setattr("app.inference.onnxruntime.OnnxEngine", refusing)
    with pytest.raises(DeviceError, match=r"^ONNX Runtime cannot run this bundle \(Check 'ok' failed"):
        opened()


@pytest.mark.parametrize(("max_batch", "on_gpu", "on_cpu"), [(0, 64, 8), (3, 3, 3)])
def test_a_gpu_is_opened_as_the_settings_say_and_has_more_images_at_once(
    no_cuda, monkeypatch, max_batch, on_gpu, on_cpu
):
    monkeypatch.setattr(device, "count_gpus", lambda: 1)
    model = opened("auto", max_batch=max_batch, model_threads=9, gpu_memory_bytes=2**30)
    assert model.best_batch("classify") == on_cpu
    options = no_cuda.call_args.kwargs
    assert (options["max_batch"], options["memory_bytes"]) == (on_gpu, 2**30)


@pytest.mark.parametrize("precision", ["int8", "bf16"])
def test_a_bundle_for_cpus_is_refused_on_a_gpu_and_served_by_the_cpu_beside_it(
    no_cuda, monkeypatch, tmp_path, caplog, precision
):
    monkeypatch.setattr(device, "NVIDIA_DRIVER", tmp_path)
    bundle = demo_in(precision)
    words = f"This bundle is in {precision}, which only CPUs compute here: export it in fp16"
    with pytest.raises(DeviceError, match=f"^{words}"):
        opened("cuda", bundle=bundle)
    assert opened("auto", bundle=bundle).engine.provider == "CPUExecutionProvider"
    assert f"{words}; the CPU is used instead" in caplog.text
    assert not no_cuda.called


@pytest.mark.parametrize(
    ("engine", "largest", "precision", "count"),
    [
        ("openvino", 8 * 2**20, "fp32", 2),
        ("onnxruntime", 4 * 2**20, "fp32", 1),
        ("openvino", 8 * 2**20, "bf16", 1),
    ],
)
def test_images_run_side_by_side_unless_weights_are_large_or_numbers_would_depend_on_it(
    monkeypatch, engine, largest, precision, count
):
    monkeypatch.setattr(device, "LARGEST_COPY", largest)
    monkeypatch.setattr(openvino.ov.Core, "get_property", lambda *_: ["FP32", "BF16"])
    monkeypatch.setattr(openvino, "_compute_in_bfloat16", lambda model: None)
    assert opened(engine=engine, bundle=demo_in(precision), model_threads=2).engine.side_by_side == count


@pytest.mark.parametrize(
    ("flags", "precision", "warned"),
    [
        ("flags\t\t: fpu avx2 fma", "int8", True),
        ("flags\t\t: fpu avx2 avx_vnni", "int8", False),
        ("Features\t: fp asimd asimddp", "int8", False),
        ("", "int8", False),
    ],
)
def test_a_processor_that_int8_does_not_make_faster_is_said(monkeypatch, tmp_path, caplog, flags, precision, warned):
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\n{flags}\nbogomips\t: 1\n")
    monkeypatch.setattr("app.machine.PROCESSOR", tmp_path / "cpuinfo")
    opened(bundle=demo_in(precision))
    assert ("this processor has no VNNI" in caplog.text) == warned
