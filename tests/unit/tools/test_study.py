"""lab/study: every experiment has the runs that its table reads, and judging images choose nothing."""

import pytest
import torch

from lab.study import transfer
from lab.study.__main__ import EXPERIMENTS
from lab.study.task import Task


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=list(EXPERIMENTS))
def test_the_table_needs_no_other_runs(experiment):
    results = dict.fromkeys(experiment.runs(), 0.75)
    rows = experiment.rows(results)
    assert all(len(row) == len(rows[0]) for row in rows)
    assert any("75.0" in str(value) for value in rows[-1].values())


def test_the_images_that_judge_a_start_do_not_choose_its_rate():
    """The rate that is better on the images to learn from is worse on those that judge."""
    low, high = transfer.RATES
    results = {run: 0.6 if (run.task.rate == high) == run.task.choosing else 0.9 for run in transfer.runs()}
    assert [(row["digits, %"][:4], row["learning rate"]) for row in transfer.rows(results)] == [("60.0", low)] * 4


def test_the_images_that_choose_are_a_fifth_of_those_to_learn_from(tmp_path):
    (train, judging), (less, choosing) = (Task(choosing=choosing).parts(tmp_path) for choosing in (False, True))
    assert torch.equal(torch.cat([less.pixels, choosing.pixels]), train.pixels)
    assert (len(train), len(judging), len(less), len(choosing)) == (1437, 360, 1149, 288)
