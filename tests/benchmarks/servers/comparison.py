"""Servers side by side: the same ViT-S/16, a JPEG in, the five likeliest labels as JSON out, on the same cores.

First a search for the arrangement of each server with the highest rate. Then all servers take turns of seconds under
the three loads of docs/benchmarks.md, in rounds that each begin with another server. What has been measured is in a
journal, so that a run that was interrupted goes on, and groups can be measured one by one.
"""

import json
import math
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import Any

from tqdm import tqdm

from tests.benchmarks.load import arrivals
from tests.benchmarks.record import ROOT, Rows, head
from tests.benchmarks.servers.contenders import EQUAL, Arrangement, Contender, contenders, pins
from tests.benchmarks.servers.journal import Journal
from tests.benchmarks.servers.stage import CONNECTIONS, Found, Stage
from tests.benchmarks.servers.weights import LABELS, write_weights
from tests.benchmarks.spread import quartiles, ratios, times

WORK = ROOT / "servers.work"
SEARCH_ROUNDS, SEARCH_SECONDS = 2, 2.5
CLOSED_ROUNDS, CLOSED_SECONDS = 6, 3.0
OPEN_ROUNDS = 4
LOAD = 0.8
COMMON_RATE = 10.0

Numbers = dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Try:
    contender: Contender
    arrangement: Arrangement
    rates: list[float]  # images/s of each round; none where it failed
    chosen: bool


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Of one server; rounds are those of all."""

    contender: Contender
    closed: list[Numbers]
    own: tuple[list[float], int] | None  # milliseconds of all rounds at LOAD of its capacity, and how many failed
    common: tuple[list[float], int] | None  # the same at COMMON_RATE

    @property
    def rates(self) -> list[float]:
        return rates_of(self.closed)

    @property
    def cpu_ms(self) -> int:
        """Of an image."""
        return round(1000 * statistics.median(each["cpu_s"] / each["images"] for each in self.closed))


@dataclass(frozen=True, kw_only=True)
class Comparison:
    group: str
    requests: int  # behind each percentile
    tries: list[Try]
    findings: list[Finding]
    left_out: dict[str, str]  # why, by name


def about(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """What the records say beside the rows."""
    left_out = {name: why for each in comparisons for name, why in each.left_out.items()}
    return {"requests behind a percentile": comparisons[0].requests, "left out": left_out, "environments": pins()}


def compare(group: str, requests: int) -> Comparison:
    """Of this group. Raises RuntimeError where the first of them, to which ratios refer, fails."""
    folder = work_folder(requests)
    weights, journal = folder / "weights", Journal(folder / "journal.jsonl")
    chosen = [each for each in contenders(weights) if group in each.groups]
    tries = [one for contender in tqdm(chosen, desc="search") for one in search(contender, weights, journal)]
    best = [one for one in tries if one.chosen]
    left_out = {each.name: "no arrangement of it ran" for each in chosen if each not in [one.contender for one in best]}
    with Stage(weights) as stage:
        findings = Rounds(stage, journal, group, best, requests).findings()
    journal.once(["finished", group], lambda: True)
    return Comparison(group=group, requests=requests, tries=tries, findings=findings, left_out=left_out | stage.failed)


def finished(group: str, requests: int) -> bool:
    """Whether it has been measured in this state of the code, so that `compare` only reads."""
    return Journal(work_folder(requests) / "journal.jsonl").has(["finished", group])


def work_folder(requests: int) -> Path:
    """With the weights, and the journal of this state of the code. Changes that are not committed begin a new one."""
    code = head()
    state = json.dumps({"commit": code["commit"], "requests": requests, "uncommitted": code["uncommitted"]})
    file = WORK / "state.json"
    if code["uncommitted"] or not file.exists() or file.read_text() != state:
        shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(exist_ok=True)
    file.write_text(state)
    weights = WORK / "weights"
    if not (weights / LABELS).exists():
        shutil.rmtree(weights, ignore_errors=True)
        weights.mkdir()
        write_weights(weights)
    return WORK


def search(contender: Contender, weights: Path, journal: Journal) -> list[Try]:
    """Its arrangements, one of them chosen where one runs."""
    if len(contender.tries) == 1:
        return [Try(contender=contender, arrangement=contender.tries[0], rates=[], chosen=True)]
    rates: dict[str, list[float]] = {arrangement.says: [] for arrangement in contender.tries}
    with Stage(weights) as stage:

        def rate(arrangement: Arrangement) -> float:
            found = stage.turn(arrangement.says, arrangement, SEARCH_SECONDS, connections=CONNECTIONS)
            return found[0]["images_per_s"] if found else 0.0

        for number, arrangement in product(range(SEARCH_ROUNDS), contender.tries):
            says = arrangement.says
            rates[says].append(journal.once(["search", contender.name, says, number], partial(rate, arrangement)))
    ran = {says: found for says, found in rates.items() if min(found) > 0}
    best = max(ran, key=lambda says: statistics.median(ran[says]), default=None)
    return [
        Try(contender=contender, arrangement=each, rates=ran.get(each.says, []), chosen=each.says == best)
        for each in contender.tries
    ]


@dataclass(frozen=True)
class Rounds:
    """The three loads, in rounds over all servers."""

    stage: Stage
    journal: Journal
    group: str
    best: list[Try]
    requests: int

    def findings(self) -> list[Finding]:
        """Of the servers that did not fail."""
        closed: dict[str, list[Numbers]] = {one.contender.name: [] for one in self.best}
        for number in tqdm(range(CLOSED_ROUNDS), desc=f"{CONNECTIONS} connections"):
            for one in rotated(self.best, number / CLOSED_ROUNDS):
                found = self._turn("closed", one, number, CLOSED_SECONDS, {"connections": CONNECTIONS})
                closed[one.contender.name] += [found[0]] if found else []
        rates = {name: LOAD * statistics.median(rates_of(rounds)) for name, rounds in closed.items() if rounds}
        own = self._open(f"at {LOAD:.0%} of its capacity", rates)
        common = self._open("at one rate", dict.fromkeys(rates, COMMON_RATE))
        failed, base = self.stage.failed, self.best[0].contender.name
        if base in failed:
            raise RuntimeError(f"ratios refer to {base}, which failed: {failed[base]}")
        measured = {one.contender.name: one.contender for one in self.best if one.contender.name not in failed}
        return [
            Finding(contender=contender, closed=closed[name], own=own.get(name), common=common.get(name))
            for name, contender in measured.items()
        ]

    def _open(self, what: str, rates: dict[str, float]) -> dict[str, tuple[list[float], int]]:
        """For each server the milliseconds of all good answers, and how many requests failed."""
        measured = [one for one in self.best if one.contender.open_loops(self.group) and one.contender.name in rates]
        milliseconds: dict[str, list[float]] = {one.contender.name: [] for one in measured}
        failed = dict.fromkeys(milliseconds, 0)
        for number in tqdm(range(OPEN_ROUNDS), desc=what):
            for one in rotated(measured, number / OPEN_ROUNDS):
                name = one.contender.name
                load = {"rate": rates[name], "seed": number}
                seconds = seconds_of(self.requests / OPEN_ROUNDS, **load)
                if found := self._turn(what, one, number, seconds, load):
                    milliseconds[name] += found[1]
                    failed[name] += round(found[0]["failed"])
        return {name: (milliseconds[name], failed[name]) for name in milliseconds}

    def _turn(self, what: str, one: Try, number: int, seconds: float, load: dict[str, float]) -> Found | None:
        """None if the server has failed. It is tried again if the run is resumed."""
        name = one.contender.name
        find = partial(self.stage.turn, name, one.arrangement, seconds, **load)
        found: Found | None = self.journal.once([self.group, what, name, number], find)
        return found


def rates_of(rounds: list[Numbers]) -> list[float]:
    return [each["images_per_s"] for each in rounds]


def rotated(servers: list[Try], share: float) -> list[Try]:
    """Beginning with the one that so large a share of them precedes."""
    first = int(share * len(servers))
    return servers[first:] + servers[:first]


def seconds_of(requests: float, *, rate: float, seed: float) -> float:
    """How long it takes until so many requests are due."""
    last = math.ceil(requests) - 1
    return next(islice(arrivals(math.inf, rate, int(seed)), last, None)) + 1e-6


def servers_table(comparisons: Sequence[Comparison]) -> Rows:
    """This project's rows first. Ratios refer to the first server of the same group."""
    rows: Rows = [
        {
            "server": shown(found.contender),
            "graph": found.contender.graph,
            "images/s (quartiles)": quartiles(found.rates, 1),
            "ratio (quartiles)": quartiles(ratios(found.rates, comparison.findings[0].rates), 2),
            f"p50 / p99 at {LOAD:.0%} of its own capacity, ms": times(found.own[0]),
            f"p50 / p99 at {COMMON_RATE:g} requests/s, ms": times(found.common[0]),
            "failed": found.own[1] + found.common[1],
            "CPU ms per image": found.cpu_ms,
            "cores taken by others": round(statistics.median(each["others"] for each in found.closed), 1),
        }
        for comparison in comparisons
        for found in comparison.findings
        if found.contender.open_loops(comparison.group) and found.own and found.common
    ]
    return sorted(rows, key=lambda row: not str(row["server"]).startswith("vit-serve"))


def equal_table(comparisons: Sequence[Comparison]) -> Rows:
    """Servers that run the same file in the same runtime; ratios refer to this project's server with it."""
    of_labels = [
        found
        for comparison in comparisons
        if comparison.group == EQUAL
        for found in comparison.findings
        if found.contender.answer == "labels"
    ]
    bases = {of_graph(found): found for found in of_labels if found.contender.server == "vit-serve"}
    return [
        {
            "graph": graph,
            "server": found.contender.server,
            "images/s (quartiles)": quartiles(found.rates, 1),
            "ratio (quartiles)": quartiles(ratios(found.rates, base.rates), 2),
            "CPU ms per image": found.cpu_ms,
        }
        for graph, base in bases.items()
        for found in of_labels
        if of_graph(found) == graph
    ]


def of_graph(found: Finding) -> str:
    return f"{found.contender.graph}, in {found.contender.runtime}"


def tries_table(comparisons: Sequence[Comparison]) -> Rows:
    return [
        {
            "server": shown(one.contender),
            "graph": one.contender.graph,
            "arrangement": one.arrangement.says,
            "images/s": round(statistics.median(one.rates), 1) if one.rates else "did not run",
            "chosen": "yes" if one.chosen else "",
        }
        for comparison in comparisons
        for one in comparison.tries
        if len(one.contender.tries) > 1 and comparison.group == one.contender.groups[0]
    ]


def shown(contender: Contender) -> str:
    return contender.server + ("" if contender.answer == "labels" else f", {contender.answer}")
