"""tests/load/soak.py: what counts as growth."""

from functools import cache

import pytest

from tests.load.mixture import Mixture
from tests.load.soak import WINDOWS, Sample, Soak, Window, windows

HOUR = 3600.0


@cache
def traffic() -> Mixture:
    """That no test sends: its images take a second to make."""
    return Mixture(0)


def soaked(*mib: float, seconds: float = HOUR) -> Soak:
    levels = [Window(mib=level, files=10, threads=10, requests=1, p99_ms=1.0) for level in mib]
    return Soak(seconds=seconds, windows=levels, traffic=traffic())


def test_a_line_through_the_windows_after_the_warm_up():
    run = soaked(50, 70, 90, *(100 + number for number in range(WINDOWS - 3)))
    assert run.growth == (pytest.approx(WINDOWS), pytest.approx(0, abs=1e-6))
    assert run.growth_mib == pytest.approx(9)
    assert run.leaks


@pytest.mark.parametrize(
    "levels", [[100, 103, 98] * 3, [100, 90, 110, 95, 112, 93, 115, 99, 108], [100 + n / 9 for n in range(9)]]
)
def test_noise_and_a_little_are_no_leak(levels):
    assert not soaked(50, 70, 90, *levels).leaks


def test_a_window_counts_with_its_least_memory():
    samples = [Sample(when=i / 2, mib=100 + 50 * (i % 3), files=10 + i % 2, threads=9) for i in range(240)]
    found = windows(samples, [(0.5, 0.01), (1.0, 0.03)], 0.0, 120.0)
    assert [window.mib for window in found] == [100] * WINDOWS
    assert {window.files for window in found} == {10}
    assert found[0].requests == 2
    assert found[0].p99_ms == pytest.approx(30)
