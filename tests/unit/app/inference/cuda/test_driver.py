"""app/inference/cuda/driver.py where there is no driver, and against one that answers."""

from types import SimpleNamespace

import pytest

from app.inference.cuda import driver as module
from app.inference.cuda.driver import count_gpus


@pytest.mark.parametrize(("of_init", "of_count", "count"), [(0, 0, 2), (100, 0, 0), (0, 100, 0)])
def test_gpus_are_counted_and_a_driver_that_does_not_work_has_none(monkeypatch, of_init, of_count, count):
    def counted(by_reference):
        by_reference._obj.value = 2
        return of_count

    driver = SimpleNamespace(cuInit=lambda flags: of_init, cuDeviceGetCount=counted)
    monkeypatch.setattr(module.ctypes, "CDLL", lambda name: driver)
    assert count_gpus() == count


def test_without_a_driver_there_are_no_gpus(monkeypatch):
    monkeypatch.setattr(module, "LIBRARY", "libcuda-that-is-not-there.so.1")
    assert count_gpus() == 0
