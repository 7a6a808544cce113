"""`python -m lab.load.replacing [REQUESTS]`: two models behind one balancer, of which one gets another bundle, and
another one, until so many requests have been answered.

Its bundles are the demo under other names. The table goes to lab/load/README.md.
"""

import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from lab.benchmarks.__main__ import publish
from lab.benchmarks.record import Rows
from lab.load.rolling import outcome
from tests.support.balancers import BALANCERS, in_front_of_models
from tests.support.edited import demo_named
from tests.support.pictures import jpeg
from tests.support.replicas import replicas, restart_all
from tests.support.server import PATIENT
from tests.support.traffic import steady

REPLICAS = 2  # of each model
RATE = 10.0  # requests a second to each model
REQUESTS = 5000  # to both
BUNDLES = ("birds-1", "birds-2")


def measure(requests: int) -> Rows:
    with TemporaryDirectory() as folder:
        bundles = [demo_named(name, Path(folder)) for name in BUNDLES]
        return [row for program in BALANCERS for row in replaced_behind(program, bundles, requests)]


def replaced_behind(program: str, bundles: list[Path], requests: int) -> Rows:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        patient = {**PATIENT, "drain_timeout_s": 60}
        birds = stack.enter_context(replicas(REPLICAS, bundle=bundles[0], root_path="/birds", **patient))
        shapes = stack.enter_context(replicas(REPLICAS, root_path="/shapes", **patient))
        ports = {"birds": [one.port for one in birds], "shapes": [one.port for one in shapes]}
        port = stack.enter_context(in_front_of_models(program, ports, folder)).port
        with (
            steady(port, jpeg(), RATE, "/birds/classify", BUNDLES) as to_birds,
            steady(port, jpeg(), RATE, "/shapes/classify") as to_shapes,
        ):
            times = 0
            while to_birds.answers.total() + to_shapes.answers.total() < requests:
                times += 1
                restart_all(birds, bundle=bundles[times % 2])
    return [
        {
            "balancer": program,
            "model": model,
            "each replica gets": what,
            "answers": ", ".join(f"{name}: {count}" for name, count in sorted(traffic.answers.items())),
            **outcome(traffic),
        }
        for model, what, traffic in (
            ("birds", f"another bundle, {times} times", to_birds),
            ("shapes", "nothing", to_shapes),
        )
    ]


if __name__ == "__main__":
    publish("replacing", measure(int(sys.argv[1]) if sys.argv[1:] else REQUESTS))
