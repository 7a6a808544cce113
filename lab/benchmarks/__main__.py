"""`python -m lab.benchmarks [serving] [engines] [memory] ...`: measure, and write the JSON and the tables.

Timings on a shared machine are noisy, so variants run interleaved, and tables have medians and ratios.
"""

import sys
from pathlib import Path

from lab.benchmarks import (
    beside,
    browser,
    cost,
    decode,
    engines,
    event_loop,
    memory,
    phrases,
    protocols,
    serving,
    tokens,
)
from lab.benchmarks.learning import chance
from lab.benchmarks.learning import comparison as learning
from lab.benchmarks.maps import chance_of_verify, what_if
from lab.benchmarks.maps import comparison as maps
from lab.benchmarks.page import write_pages
from lab.benchmarks.record import Head, Rows, record_paths, write_record
from lab.benchmarks.rounds import table

BENCHMARKS = {
    "serving": serving.measure,
    "engines": engines.measure,
    "decode": decode.measure,
    "protocols": protocols.measure,
    "event_loop": event_loop.measure,
    "tokens": tokens.measure,
    "beside": beside.measure,
    "browser": browser.measure,
    "cost": cost.measure,
    "memory": memory.measure,
    "phrases": phrases.measure,
    "chance": chance.measure,
    "maps": maps.measure,
    "what_if": what_if.measure,
    "verify_chance": chance_of_verify.measure,
    "learning": learning.measure,
}
FOLDER = Path(__file__).parent


def main() -> None:
    for name in sys.argv[1:] or BENCHMARKS:
        publish(name, BENCHMARKS[name]())


def publish(name: str, rows: Rows, more: Head | None = None) -> None:
    """Write NAME.json where it is, or beside this, print the table, and write the pages. `more`: see `write_record`."""
    write_record(record_paths().get(name, FOLDER / f"{name}.json"), rows, more)
    print(table(rows))
    write_pages()


if __name__ == "__main__":
    main()
