"""`python -m lab.benchmarks.servers [GROUP...] [--requests N]`: measure servers side by side; rewrites the tables.

Groups are those of one precision (fp32, bf16, int8), others (slower ones in fp32) and equal (servers that run the same
file). Without a name it is all of them, but bf16 where the processor has no instructions for it. Each takes 15 to 30
minutes on two cores. A group that was measured before in the same state of the code is not measured again. The table of
equal graphs is rewritten with its group, the others when all precisions are there. The first is that of this kind of
processor: precisions are as fast as its instructions. N requests stand behind each percentile (500).
"""

import argparse
import platform
import shelve
import shutil
import sys

from app.machine import instructions
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
from lab.benchmarks.servers.contenders import EQUAL, GROUPS

KINDS = ("amx_int8", "avx512_vnni", "avx2")  # of processors, by the instructions that decide
BF16 = {"amx_bf16", "avx512_bf16"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.benchmarks.servers")
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--requests", type=int, default=500, help="behind each percentile")
    arguments = parser.parse_args()
    with shelve.open(str(work_folder(arguments.requests) / "journal")) as journal:
        possible = [group for group in GROUPS if group != "bf16" or BF16 & instructions()]
        for group in arguments.groups or possible:
            if group not in journal:
                journal[group] = compare(group, arguments.requests, journal)
            for of_groups in (servers_table, equal_table, tries_table):
                rows = of_groups([journal[group]])
                print(table(rows) if rows else "")
            for name, why in journal[group].left_out.items():
                print(f"left out: {name}: {why}", file=sys.stderr)
        done = {group: journal[group] for group in GROUPS if group in journal}
    every = list(done.values())
    if EQUAL in done:
        publish("servers_equal", equal_table([done[EQUAL]]), about([done[EQUAL]]))
    if missing := [group for group in PRECISIONS if group in possible and group not in done]:
        print(f"The other tables are written when there are also: {', '.join(missing)}")
        return
    kind = next((each for each in KINDS if each in instructions()), platform.machine())
    publish(f"servers_{kind}", servers_table(every), about(every))
    publish("servers_tries", tries_table(every), about(every))
    if done.keys() >= {*possible}:
        shutil.rmtree(WORK)


if __name__ == "__main__":
    main()
