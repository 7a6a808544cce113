"""app/inference/device.py where CUDA does not work."""

import math
import shutil
import threading
from pathlib import Path

import pytest

from app.bundle import Bundle, BundleError, load_bundle
from app.inference import device
from app.inference.device import open_engine
from app.inference.faults import DeviceError
from app.inference.known_answer import WrongAnswer
from app.settings import DEMO_BUNDLE, Settings


@pytest.fixture(autouse=True)
def no_cuda(monkeypatch):
    def broken(**_):
        raise DeviceError("no driver")

    monkeypatch.setattr(device, "CudaEngine", broken)


def opened(name: str = "cpu", *, max_memory: float = math.inf, **options):
    settings = Settings(device=name, max_batch=2, **options)
    return open_engine(settings=settings, bundle=load_bundle(DEMO_BUNDLE), max_memory=max_memory)


@pytest.mark.parametrize("name", ["auto", "cpu"])
def test_the_cpu_is_used_and_warm(name):
    engine = opened(name)
    assert engine.provider == "CPUExecutionProvider"
    assert engine.expected("explain", 1) > 0


@pytest.mark.parametrize("name", ["auto", "cpu"])
def test_the_cpu_is_opened_before_the_checksums_are_computed(monkeypatch, name):
    on_cpu = threading.Event()

    class SlowBundle(Bundle):
        def check_files(self):
            assert on_cpu.wait(10)

    monkeypatch.setattr(device, "_open_on_cpu", lambda *_, **__: on_cpu.set())
    read = load_bundle(DEMO_BUNDLE)
    bundle = SlowBundle(folder=read.folder, manifest=read.manifest, digest=read.digest)
    open_engine(settings=Settings(device=name, cache="off"), bundle=bundle)


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
        ("INFO", "the model runs on CPUExecutionProvider"),
    ]


@pytest.fixture
def wrong_cuda(monkeypatch, tmp_path):
    def wrong(**_):
        raise WrongAnswer("The model computes wrong numbers on CUDA")

    monkeypatch.setattr(device, "CudaEngine", wrong)
    monkeypatch.setattr(device, "NVIDIA_DRIVER", tmp_path / "none")


def test_a_gpu_that_computes_wrong_numbers_is_replaced_with_a_warning(wrong_cuda, caplog):
    assert opened("auto").provider == "CPUExecutionProvider"
    said = "The model computes wrong numbers on CUDA; the CPU is used instead"
    assert [line.levelname for line in caplog.records if line.message == said] == ["WARNING"]


def test_a_gpu_that_computes_wrong_numbers_is_refused_where_it_was_asked_for(wrong_cuda):
    with pytest.raises(WrongAnswer, match="wrong numbers on CUDA"):
        opened("cuda")


@pytest.fixture
def cuda(monkeypatch):
    """What the engine for a GPU was opened with. It then does not work."""
    asked = {}

    def opened(**options):
        asked.update(options)
        raise DeviceError("no driver")

    monkeypatch.setattr(device, "CudaEngine", opened)
    return asked


@pytest.mark.parametrize(("max_batch", "on_gpu", "on_cpu"), [(0, 64, 8), (3, 3, 3)])
def test_the_largest_batch_is_that_of_the_device_unless_it_is_set(cuda, max_batch, on_gpu, on_cpu):
    settings = Settings(device="auto", max_batch=max_batch)
    assert open_engine(settings=settings, bundle=load_bundle(DEMO_BUNDLE)).max_batch == on_cpu
    assert cuda["max_batch"] == on_gpu


def test_gpu_and_its_memory_are_those_of_the_settings(cuda):
    opened("auto", gpu=3, gpu_memory_bytes=2**30)
    assert (cuda["gpu"], cuda["memory_bytes"]) == (3, 2**30)


def int8(bundle: Bundle) -> Bundle:
    manifest = bundle.manifest.model_copy(update={"precision": "int8"})
    return Bundle(folder=bundle.folder, manifest=manifest, digest=bundle.digest)


def test_a_bundle_in_int8_is_refused_on_a_gpu_with_the_reason(cuda):
    with pytest.raises(DeviceError, match=r"^This bundle is in int8, which only CPUs compute here: export it in fp16"):
        open_engine(settings=Settings(device="cuda"), bundle=int8(load_bundle(DEMO_BUNDLE)))
    assert cuda == {}


def test_a_bundle_in_int8_is_served_by_the_cpu_beside_a_gpu(cuda, monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(device, "NVIDIA_DRIVER", tmp_path)
    engine = open_engine(settings=Settings(device="auto"), bundle=int8(load_bundle(DEMO_BUNDLE)))
    assert engine.provider == "CPUExecutionProvider"
    assert "export it in fp16 for a GPU; the CPU is used instead" in caplog.text


def gears_of(engine) -> set[str]:
    """Those that it has. Which of them the warm-up measures depends on the machine."""
    return set(engine._gears.runs)


def test_with_several_cores_there_are_two_gears():
    assert opened(model_threads=2).concurrency == 2
    assert gears_of(opened(model_threads=2)) == {"wide", "narrow"}
    assert gears_of(opened(model_threads=1)) == {"wide"}


@pytest.mark.parametrize(("mebibytes", "gears"), [(36, {"wide"}), (38, {"wide", "narrow"})])
def test_copies_of_weights_for_a_second_gear_are_not_made_where_they_take_half_of_the_memory(mebibytes, gears):
    """The weights of the demo have 4.5 MiB, and without a cache four sessions have a copy each."""
    assert gears_of(opened(model_threads=2, max_memory=mebibytes * 2**20)) == gears


def folders(cache) -> list:
    return [folder for folder in cache.iterdir() if folder.is_dir()]


def test_weights_are_packed_once_and_then_mapped(tmp_path, caplog):
    caplog.set_level("INFO")
    for _ in range(2):
        engine = opened(cache=str(tmp_path), model_threads=2, max_memory=36 * 2**20)
        assert gears_of(engine) == {"wide", "narrow"}  # mapped weights count for nobody
        assert 0 < engine.deviation()["classify"] < 1
    assert len(folders(tmp_path)) == 1
    assert caplog.text.count("packing the weights") == 1


def test_damaged_packed_weights_are_removed_and_not_served(tmp_path, caplog):
    opened(cache=str(tmp_path))
    (folder,) = folders(tmp_path)
    weights = folder / "weights.bin"
    data = bytearray(weights.read_bytes())
    data[-100] ^= 1  # such a small error is no wrong answer to the known image
    weights.write_bytes(data)
    assert 0 < opened(cache=str(tmp_path)).deviation()["classify"] < 1
    assert f"the packed weights in {folder} are not used, and are removed: weights.bin was altered" in caplog.text
    assert folders(tmp_path) == []
    opened(cache=str(tmp_path))
    assert len(folders(tmp_path)) == 1


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> Path:
    """A cache with the packed weights of the demo."""
    cache = tmp_path_factory.mktemp("packed")
    opened(cache=str(cache))
    return cache


@pytest.mark.parametrize("name", ["classify.onnx", "explain.onnx", "weights.bin", "checksums.json"])
@pytest.mark.parametrize("damage", ["cut", "emptied", "removed", "other bytes"])
def test_whatever_happens_to_packed_files_the_bundle_is_served(packed, tmp_path, name, damage):
    shutil.copytree(packed, tmp_path, dirs_exist_ok=True)
    (folder,) = folders(tmp_path)
    file = folder / name
    data = file.read_bytes()
    if damage == "removed":
        file.unlink()
    else:
        file.write_bytes({"cut": data[: len(data) // 2], "emptied": b"", "other bytes": bytes(len(data))}[damage])
    assert opened(cache=str(tmp_path)).provider == "CPUExecutionProvider"


def test_a_bundle_that_was_altered_is_refused_though_it_was_packed_before(tmp_path):
    bundle = tmp_path / "bundle"
    shutil.copytree(DEMO_BUNDLE, bundle)
    settings = Settings(device="cpu", cache=str(tmp_path / "cache"))
    open_engine(settings=settings, bundle=load_bundle(bundle))
    with (bundle / "weights.bin").open("r+b") as file:
        file.seek(1000)
        file.write(b"\1\2\3\4")
    with pytest.raises(BundleError, match=r"weights\.bin does not have the checksum"):
        open_engine(settings=settings, bundle=load_bundle(bundle))
