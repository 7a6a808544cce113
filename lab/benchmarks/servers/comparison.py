"""Servers side by side: the same ViT-S/16, a JPEG in, the five likeliest labels as JSON out, on the same cores.

First a search for the arrangement of each server with the highest rate. Then all servers take turns of seconds under
the three loads of docs/benchmarks.md, in rounds that each begin with another server.
"""

import json
import math
import shutil
import statistics
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

from lab.benchmarks.record import ROOT, Rows, head
from lab.benchmarks.rounds import quartiles, ratios, times
from lab.benchmarks.servers.contenders import EQUAL, Arrangement, Contender, contenders, pins
from lab.benchmarks.servers.stage import CONNECTIONS, Found, Stage
from lab.benchmarks.servers.weights import LABELS, write_weights
from tests.support.arrivals import arrivals

WORK = ROOT / "servers.work"
WEIGHTS = "weights"
SEARCH_ROUNDS, SEARCH_SECONDS = 2, 2.5
CLOSED_ROUNDS, CLOSED_SECONDS = 6, 3.0
OPEN_ROUNDS = 4
LOAD = 0.8
COMMON_RATE = 10.0

Numbers = dict[str, float]
Load = dict[str, float]  # arguments of Stage.turn
Answers = tuple[list[float], int]  # milliseconds of the good ones, and how many requests failed


@dataclass(frozen=True, kw_only=True)
class Search:
    contender: Contender
    rates: dict[str, list[float]]  # images/s of each round, by what an arrangement says; only of those that ran

    @property
    def best(self) -> Arrangement | None:
        ran = [each for each in self.contender.tries if each.says in self.rates]
        return max(ran, key=lambda each: sum(self.rates[each.says]), default=None)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Of one server; rounds are those of all. The open loops are those of its first group alone."""

    contender: Contender
    closed: list[Numbers]
    own: Answers  # at LOAD of its capacity
    common: Answers  # at COMMON_RATE

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
    tries: list[Search]
    findings: list[Finding]
    left_out: dict[str, str]  # why, by name


def about(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """What the records say beside the rows."""
    left_out = {name: why for each in comparisons for name, why in each.left_out.items()}
    return {"requests behind a percentile": comparisons[0].requests, "left out": left_out, "environments": pins()}


def work_folder(requests: int) -> Path:
    """With the weights, and what was found in this state of the code. Changes that are not committed begin anew."""
    code = head()
    state = json.dumps({"commit": code["commit"], "requests": requests, "uncommitted": code["uncommitted"]})
    file = WORK / "state.json"
    if code["uncommitted"] or not file.exists() or file.read_text() != state:
        shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(exist_ok=True)
    file.write_text(state)
    weights = WORK / WEIGHTS
    if not (weights / LABELS).exists():
        shutil.rmtree(weights, ignore_errors=True)
        weights.mkdir()
        write_weights(weights)
    return WORK


def compare(group: str, requests: int, journal: MutableMapping[str, Any]) -> Comparison:
    """Of this group. The journal keeps the rates of each search, because servers are in several groups.

    Raises RuntimeError where the first server, to which ratios refer, fails.
    """
    weights = WORK / WEIGHTS
    chosen = [each for each in contenders(weights) if group in each.groups]
    for contender in tqdm(chosen, desc="search"):
        if contender.name not in journal:
            journal[contender.name] = search(contender, weights)
    tries = [Search(contender=each, rates=journal[each.name]) for each in chosen]
    left_out = {each.contender.name: "no arrangement of it ran" for each in tries if each.best is None}
    with Stage(weights) as stage:
        findings = measured(stage, group, tries, requests)
        left_out |= stage.failed
    return Comparison(group=group, requests=requests, tries=tries, findings=findings, left_out=left_out)


def search(contender: Contender, weights: Path) -> dict[str, list[float]]:
    """Images/s of each arrangement that runs, by what it says; a single one needs no rates."""
    arrangements = {each.says: each for each in contender.tries}
    if len(arrangements) == 1:
        return {says: [] for says in arrangements}
    load: Load = {"seconds": SEARCH_SECONDS, "connections": CONNECTIONS}
    with Stage(weights) as stage:
        turns = in_rounds(stage, arrangements, SEARCH_ROUNDS, lambda name, number: load, desc=contender.name)
        return {says: rates_of([figures for figures, _ in turns[says]]) for says in turns if says not in stage.failed}


def measured(stage: Stage, group: str, tries: list[Search], requests: int) -> list[Finding]:
    """The three loads. A server that failed has no finding."""
    servers = {each.contender.name: best for each in tries if (best := each.best)}
    load: Load = {"seconds": CLOSED_SECONDS, "connections": CONNECTIONS}
    turns = in_rounds(stage, servers, CLOSED_ROUNDS, lambda name, number: load, desc=f"{CONNECTIONS} connections")
    closed = {name: [figures for figures, _ in found] for name, found in turns.items()}
    whole = [each.contender.name for each in tries if each.best and each.contender.open_loops(group)]

    def open_loop(rate_of: Callable[[str], float], desc: str) -> dict[str, Answers]:
        def load(name: str, number: int) -> Load:
            poisson = {"rate": rate_of(name), "seed": number}
            return {"seconds": seconds_of(requests / OPEN_ROUNDS, **poisson), **poisson}

        alive = {name: servers[name] for name in whole if name not in stage.failed}
        return {name: answers(found) for name, found in in_rounds(stage, alive, OPEN_ROUNDS, load, desc=desc).items()}

    own = open_loop(lambda name: LOAD * statistics.median(rates_of(closed[name])), f"at {LOAD:.0%} of its capacity")
    common = open_loop(lambda name: COMMON_RATE, "at one rate")
    base = tries[0].contender.name
    if base in stage.failed:
        raise RuntimeError(f"ratios refer to {base}, which failed: {stage.failed[base]}")
    nothing: Answers = ([], 0)
    return [
        Finding(
            contender=one, closed=closed[one.name], own=own.get(one.name, nothing), common=common.get(one.name, nothing)
        )
        for one in (each.contender for each in tries)
        if one.name in servers and one.name not in stage.failed
    ]


def in_rounds(
    stage: Stage,
    servers: Mapping[str, Arrangement],
    rounds: int,
    load: Callable[[str, int], Load],
    *,
    desc: str,
) -> dict[str, list[Found]]:
    """What each server did in each round under `load(name, round)`. Each round begins with another server."""
    found: dict[str, list[Found]] = {name: [] for name in servers}
    names = list(servers)
    for number in tqdm(range(rounds), desc=desc):
        first = number * len(names) // rounds
        for name in names[first:] + names[:first]:
            if turn := stage.turn(name, servers[name], **load(name, number)):
                found[name].append(turn)
    return found


def answers(turns: list[Found]) -> Answers:
    milliseconds = [each for _, of_turn in turns for each in of_turn]
    return milliseconds, sum(round(figures["failed"]) for figures, _ in turns)


def rates_of(rounds: list[Numbers]) -> list[float]:
    return [each["images_per_s"] for each in rounds]


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
        if found.contender.open_loops(comparison.group)
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
            "server": shown(each.contender),
            "graph": each.contender.graph,
            "arrangement": arrangement.says,
            "images/s": round(statistics.median(rates), 1) if rates else "did not run",
            "chosen": "yes" if arrangement == each.best else "",
        }
        for comparison in comparisons
        for each in comparison.tries
        for arrangement, rates in ((one, each.rates.get(one.says)) for one in each.contender.tries)
        if len(each.contender.tries) > 1 and comparison.group == each.contender.groups[0]
    ]


def shown(contender: Contender) -> str:
    return contender.server + ("" if contender.answer == "labels" else f", {contender.answer}")
