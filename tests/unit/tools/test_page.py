"""tests/benchmarks/page.py: pages are written from the records."""

from tests.benchmarks.page import table, written
from tests.benchmarks.record import read_record, record_paths, rows_of

TREE = "<!-- tree -->\nas it is\n<!-- /tree -->\n"


def test_old_tables_and_figures_are_replaced_and_other_blocks_stay():
    requests = read_record(record_paths()["servers"]).head["requests behind a percentile"]
    page = "<!-- cost -->\n{}\n<!-- /cost -->\n" + TREE + "{}<!-- requests behind a percentile -->"
    assert written(page.format("old", 0)) == page.format(table(rows_of("cost")), requests)
