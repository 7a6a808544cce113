"""Networks that meet tasks, on all cores: first what is learned before, which tasks share, then the tasks."""

import multiprocessing
import os
from collections.abc import Collection
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from lab.study.backbone import Backbone
from lab.study.images import draw_shapes
from lab.study.task import Task


@dataclass(frozen=True, kw_only=True)
class Run:
    backbone: Backbone
    task: Task

    def accuracy(self, work: Path) -> float:
        return self.task.accuracy(self.backbone.network(work), work)


def accuracies(runs: Collection[Run], work: Path) -> dict[Run, float]:
    """By run. What the folder `work` has is not drawn or learned again.

    Every process has one thread, so that the numbers can be repeated, and draws no progress bars of its own.
    """
    draw_shapes(work, sorted({run.task.side for run in runs} | {run.backbone.config.image_size[0] for run in runs}))
    os.environ["TQDM_DISABLE"] = "1"  # for processes that are started from here on
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), context, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        backbones = sorted({run.backbone for run in runs}, key=_cost, reverse=True)
        _wait([pool.submit(backbone.network, work) for backbone in backbones], "pre-training")
        futures = [pool.submit(run.accuracy, work) for run in runs]
        _wait(futures, "tasks")
        return {run: future.result() for run, future in zip(runs, futures, strict=True)}


def _cost(backbone: Backbone) -> int:
    return 0 if backbone.learned == "nothing" else backbone.config.width**2 * backbone.config.depth


def _wait(futures: list[Future[Any]], title: str) -> None:
    """Raises the first error as soon as it is there."""
    for future in tqdm(as_completed(futures), total=len(futures), desc=title, unit="run"):
        future.result()
