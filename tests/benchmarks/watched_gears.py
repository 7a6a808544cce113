"""`python -m tests.benchmarks.watched_gears`: the service, which writes each run that it plans to the file GEARS."""

import json
import os
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from app.__main__ import main
from app.inference.contract import Plan
from app.inference.gears import Gears


class WatchedGears(Gears):
    def plan(self, **in_work: Any) -> Plan | None:
        plan = super().plan(**in_work)
        if plan:
            with Path(os.environ["GEARS"]).open("a") as file:
                file.write(json.dumps([time.time(), *plan]) + "\n")
        return plan


if __name__ == "__main__":
    with patch("app.inference.device.Gears", WatchedGears):
        main()
