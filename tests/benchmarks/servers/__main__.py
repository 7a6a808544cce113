"""`python -m tests.benchmarks.servers [GROUP...] [--requests N]`: measure servers side by side; rewrites the tables.

Groups are peers, openvino and equal (other servers with this project's graphs, and this one with the plain export).
Without a name it is all of them: an hour and a half on two cores. N requests stand behind each percentile (1000); with
100 it takes half as long.
"""

import argparse
import shutil
from pathlib import Path

from tests.benchmarks.__main__ import publish
from tests.benchmarks.servers.comparison import WORK, compare, equal_table, servers_table, tries_table, warn
from tests.benchmarks.servers.contenders import GROUPS

FOLDER = Path(__file__).parents[1]
TABLES = {"servers": servers_table, "servers_equal": equal_table, "servers_tries": tries_table}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.servers")
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--requests", type=int, default=1000, help="behind each percentile")
    arguments = parser.parse_args()
    found = compare(arguments.groups or GROUPS, arguments.requests)
    for name, table in TABLES.items():
        publish(name, table(found), FOLDER, found.head)
    warn(found)
    shutil.rmtree(WORK)


if __name__ == "__main__":
    main()
