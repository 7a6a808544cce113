"""`python -m tests.benchmarks.servers [GROUP...] [--requests N]`: measure servers side by side; rewrites the tables.

Groups are those of one precision (fp32, bf16, int8), others (slower ones in fp32) and equal (servers that run the same
file). Without a name it is all of them. Each takes 15 to 20 minutes on two cores. A group that was measured before in
the same state of the code is not measured again, and the tables are rewritten when there are all. N requests stand
behind each percentile (500).

A processor with AMX has records of its own, which need no more groups than those of a precision. One without
instructions for bf16 has records of its own too, and no group of bf16.
"""

import argparse
import shutil
from pathlib import Path

from tests.benchmarks.__main__ import publish
from tests.benchmarks.leaders import PRECISIONS
from tests.benchmarks.page import table
from tests.benchmarks.record import processor
from tests.benchmarks.servers.comparison import (
    WORK,
    about,
    compare,
    equal_table,
    finished,
    servers_table,
    tries_table,
    warn,
)
from tests.benchmarks.servers.contenders import GROUPS

FOLDER = Path(__file__).parents[1]
TABLES = {"servers": servers_table, "servers_equal": equal_table, "servers_tries": tries_table}


def main() -> None:
    kind = kind_of(processor())
    groups = [group for group in GROUPS if kind != "_avx2" or group != "bf16"]
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.servers")
    parser.add_argument("groups", nargs="*", choices=[*groups, []], metavar="GROUP", help=", ".join(groups))
    parser.add_argument("--requests", type=int, default=500, help="behind each percentile")
    arguments = parser.parse_args()
    for group in arguments.groups or groups:
        comparisons = [compare(group, arguments.requests)]
        for rows in (of_group(comparisons) for of_group in TABLES.values()):
            print(table(rows) if rows else "")
        warn(comparisons)
    done = [group for group in groups if finished(group, arguments.requests)]
    needed = [group for group in groups if kind != "_amx" or group in PRECISIONS]
    if missing := [group for group in needed if group not in done]:
        print(f"The tables are written when there are also: {', '.join(missing)}")
        return
    every = [compare(group, arguments.requests) for group in done]
    for name, of_groups in TABLES.items():
        if rows := of_groups(every):
            publish(f"{name}{kind}", rows, FOLDER, about(every))
    shutil.rmtree(WORK)


def kind_of(processor: str) -> str:
    """How the records of a processor end."""
    if "amx_bf16" in processor:
        return "_amx"
    return "" if "avx512_bf16" in processor else "_avx2"


if __name__ == "__main__":
    main()
