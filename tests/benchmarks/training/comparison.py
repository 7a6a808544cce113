"""A step of training: this project's loop, timm's and transformers' own, on the same network, batch and precision.

Each has its own process, with AdamW, weight decay, a schedule, and gradients clipped at a norm of 1. They run a step
at a time, in turn, so that a change of the machine's speed affects them alike. Batches lie ready in memory: reading
images is another matter.
"""

import statistics
import sys
from contextlib import ExitStack
from functools import partial

from tests.benchmarks.peak import peak_mib, resident_mib
from tests.benchmarks.record import ROOT, Row, Rows
from tests.benchmarks.rounds import in_turn
from tests.benchmarks.runtimes.comparison import conversing
from tests.benchmarks.spread import ratios

PYTHON = ROOT / ".venv-bench" / "training" / "bin" / "python"  # with timm and transformers; one torch for all
VARIANTS = ("Ti/16", "S/16")
BATCH = 32
WARM_UP, ROUNDS = 3, 9
OURS = "vit-serve"
TRAINERS = {OURS: "ours", "timm": "timm_task", "transformers Trainer": "transformers_trainer"}


def measure() -> Rows:
    if not PYTHON.exists():
        sys.exit("timm and transformers are missing: `make bench` installs them")
    rows: dict[str, Row] = {name: {"trainer": name} for name in TRAINERS}
    for variant in VARIANTS:
        for name, (ms, ratio, mib) in measured(variant).items():
            rows[name][f"{variant}: ms (ours to it)"] = f"{ms:.0f} ({ratio:.2f})"
            rows[name][f"{variant}: memory, MiB"] = round(mib)
    return list(rows.values())


def measured(variant: str) -> dict[str, tuple[float, float, float]]:
    """By trainer: the median milliseconds of a step, the median ratio of ours to it, and the memory that steps take."""
    with ExitStack() as stack:
        command = (str(PYTHON), "-m")
        running = {
            name: stack.enter_context(conversing([*command, f"tests.benchmarks.training.{module}", variant]))
            for name, module in TRAINERS.items()
        }
        before = {}
        for name, partner in running.items():
            partner.milliseconds(BATCH)  # answers once the network is there, before a step
            before[name] = resident_mib(partner.process.pid)
            for _ in range(WARM_UP):
                partner.milliseconds(BATCH)
        steps = {name: partial(partner.milliseconds, BATCH) for name, partner in running.items()}
        rounds = in_turn(steps, ROUNDS, desc=variant)
        memory = {name: peak_mib(partner.process.pid) - before[name] for name, partner in running.items()}
    return {
        name: (statistics.median(times), statistics.median(ratios(rounds[OURS], times)), memory[name])
        for name, times in rounds.items()
    }
