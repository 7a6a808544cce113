"""`python -m lab.benchmarks.servers [GROUP...] [--requests N]`: measure servers side by side; rewrites the tables.

Groups are those of one precision (fp32, bf16, int8), others (slower ones in fp32) and equal (servers that run the same
file). Without a name it is all of them. Each takes 15 to 20 minutes on two cores. A group that was measured before in
the same state of the code is not measured again, and the tables are rewritten when those of all precisions are there. N
requests stand behind each percentile (500).
"""

import argparse
import shelve
import shutil
import sys

from lab.benchmarks.__main__ import publish
from lab.benchmarks.leaders import PRECISIONS
from lab.benchmarks.rounds import table
from lab.benchmarks.servers.comparison import (
    WORK,
    about,
    compare,
    equal_table,
    servers_table,
    tries_table,
    work_folder,
)
from lab.benchmarks.servers.contenders import GROUPS

TABLES = {"servers": servers_table, "servers_equal": equal_table, "servers_tries": tries_table}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.benchmarks.servers")
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--requests", type=int, default=500, help="behind each percentile")
    arguments = parser.parse_args()
    with shelve.open(str(work_folder(arguments.requests) / "journal")) as journal:
        for group in arguments.groups or GROUPS:
            if group not in journal:
                journal[group] = compare(group, arguments.requests, journal)
            for rows in (of_groups([journal[group]]) for of_groups in TABLES.values()):
                print(table(rows) if rows else "")
            for name, why in journal[group].left_out.items():
                print(f"left out: {name}: {why}", file=sys.stderr)
        done = {group: journal[group] for group in GROUPS if group in journal}
    if missing := [group for group in PRECISIONS if group not in done]:
        print(f"The tables are written when there are also: {', '.join(missing)}")
        return
    every = list(done.values())
    for name, of_groups in TABLES.items():
        if rows := of_groups(every):
            publish(name, rows, about(every))
    shutil.rmtree(WORK)


if __name__ == "__main__":
    main()
