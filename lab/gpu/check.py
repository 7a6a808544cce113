"""`python -m lab.gpu.check BUNDLES OUT SECTION...`: what only an NVIDIA GPU can tell.

Each section prints its tables and writes them to OUT/SECTION.json. One in which a number is wrong fails, and the others
go on. BUNDLES is a folder of bundles; the section `bundles` exports those that the others want. `--only NAME` takes
single bundles, `--seconds` is the length of each load.

It needs what `make setup` installs, and CUDA 13 with cuDNN 9, such as PyTorch or `make serve DEVICE=cuda` brings.
"""

import argparse
import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from lab.benchmarks.record import Rows, head
from lab.benchmarks.rounds import table
from lab.gpu import bundles, card, kernels, parity, peers, scarcity, serving, speed
from lab.gpu.bundles import Place, Tables

SECTIONS: dict[str, Callable[[Place], Tables]] = {
    "bundles": bundles.measure,
    "parity": parity.measure,
    "speed": speed.measure,
    "kernels": kernels.measure,
    "served": serving.measure,
    "replicas": serving.measure_replicas,
    "scarcity": scarcity.measure,
    "peers": peers.measure,
}
SECONDS = 10.0


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.gpu.check")
    parser.add_argument("bundles", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("sections", nargs="+", choices=SECTIONS, metavar="section", help=", ".join(SECTIONS))
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    options = parser.parse_args(arguments)
    for folder in (options.bundles, options.out):
        folder.mkdir(parents=True, exist_ok=True)
    place = Place(folder=options.bundles, names=tuple(options.only), seconds=options.seconds)
    failed = []
    for name in options.sections:
        start = time.perf_counter()
        try:
            tables = {title: even(rows) for title, rows in SECTIONS[name](place).items()}
        except Exception:
            traceback.print_exc()
            failed.append(name)
            continue
        measured = {**head(), "gpu": card.describe(), "seconds": round(time.perf_counter() - start)}
        (options.out / f"{name}.json").write_text(json.dumps({"measured": measured, "tables": tables}, indent=2) + "\n")
        print(f"\n## {name}: {measured['seconds']} s on {measured['gpu']}")
        for title, rows in tables.items():
            print(f"\n{title}\n\n{table(rows) if rows else 'nothing: is the bundle there?'}", flush=True)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def even(rows: Rows) -> Rows:
    """Every row with every column: not all models have all outputs."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return [{column: row.get(column, "") for column in columns} for row in rows]


if __name__ == "__main__":
    main(sys.argv[1:])
