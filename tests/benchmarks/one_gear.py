"""`python -m tests.benchmarks.one_gear`: the service with two runs at a time on all cores, whatever the load."""

from unittest.mock import patch

from app.__main__ import main
from app.inference.gears import Gears


class OneGear(Gears):
    def __init__(self, *, cores: int, lanes: int) -> None:
        super().__init__(cores=cores)


if __name__ == "__main__":
    with patch("app.inference.device.Gears", OneGear):
        main()
