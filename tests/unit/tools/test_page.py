"""lab/benchmarks/page.py and lab/parity/summary.py: pages are written from the records."""

from lab.benchmarks.page import table, written
from lab.benchmarks.record import read_record, record_paths, rows_of
from lab.parity import record, summary

TREE = "<!-- tree -->\nas it is\n<!-- /tree -->\n"


def test_old_tables_and_figures_are_replaced_and_other_blocks_stay():
    requests = read_record(record_paths()["servers"]).head["requests behind a percentile"]
    page = "<!-- cost -->\n{}\n<!-- /cost -->\n" + TREE + "{}<!-- requests behind a percentile -->"
    assert written(page.format("old", 0)) == page.format(table(rows_of("cost")), requests)


def test_the_committed_summary_is_that_of_the_committed_record():
    page = summary.PAGE.read_text()
    assert f"<!-- parity -->\n{summary.summary(record.read())}\n<!-- /parity -->" in page
