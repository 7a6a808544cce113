"""tests/load/overload.py: what the table says of its loads."""

import math

from tests.load.overload import Run, row


def run(refused: int) -> Run:
    figures = {
        "offered": 20,
        "refused": refused,
        "refused_p99_ms": 7.0 if refused else math.nan,
        "timeouts": 0,
        "resets": 0,
        "other_statuses": 0,
        "images_per_s": 10.0,
        "cpu_s": 1.0,
        "generator_cpu_s": 0.1,
        "seconds": 2.0,
        "others": 0.0,
    }
    return Run(figures, [5.0] * (20 - refused), [7.0] * refused, [0.001])


def test_refusals_are_those_of_all_rounds():
    cells = row(2, [run(0), run(10)], [5.0, 5.0])
    assert (cells["refused, %"], cells["refused, p50 / p99, ms"]) == (25.0, "7 / 7")
    assert cells["answered / peak (quartiles)"] == "2.00 (2.00 to 2.00)"
