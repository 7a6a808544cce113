"""The record of `make parity` and its summary; the libraries are not needed."""

from tests.parity import record, summary


def test_the_committed_summary_is_that_of_the_committed_record():
    page = summary.PAGE.read_text()
    assert f"<!-- parity -->\n{summary.summary(record.read())}\n<!-- /parity -->" in page
