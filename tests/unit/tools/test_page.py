"""tests/benchmarks/page.py: pages are written from the records."""

from tests.benchmarks.page import table, written
from tests.benchmarks.record import read_record, record_paths, rows_of

TREE = "<!-- tree -->\nas it is\n<!-- /tree -->\n"


def test_old_tables_and_figures_are_replaced_and_other_blocks_stay():
    requests = read_record(record_paths()["servers"]).head["requests behind a percentile"]
    old = f"<!-- doors -->\nold\n<!-- /doors -->\n{TREE}0<!-- requests behind a percentile -->"
    new = f"<!-- doors -->\n{table(rows_of('doors'))}\n<!-- /doors -->\n{TREE}{requests}<!-- requests behind a percentile -->"
    assert written(old) == new
