"""app/inference/device.py where CUDA does not work."""

import pytest

from app.bundle import load_bundle
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


def opened(name: str):
    return open_engine(settings=Settings(device=name, max_batch=2), bundle=load_bundle(DEMO_BUNDLE))


@pytest.mark.parametrize("name", ["auto", "cpu"])
def test_the_cpu_is_used_and_warm(name):
    engine = opened(name)
    assert engine.provider == "CPUExecutionProvider"
    assert engine.expected("explain", 1) > 0


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
