"""`python -m tests.benchmarks.runtimes.pytorch VARIANT float32|bfloat16 eager|compile EXPECTED`."""

import sys
from pathlib import Path

import numpy as np
import torch

from app.machine import allowed_cores
from tests.benchmarks.random_model import random_checkpoint
from tests.benchmarks.runtimes.conversation import Run, answer, normalised


def main(variant: str, dtype: str, mode: str, expected: str) -> None:
    torch.set_num_threads(allowed_cores())
    model = random_checkpoint(variant).model.to(getattr(torch, dtype))
    forward = torch.compile(model) if mode == "compile" else model

    def prepare(batch: int) -> Run:
        images = torch.from_numpy(normalised(batch)).to(next(model.parameters()).dtype)

        def run() -> np.ndarray:
            with torch.inference_mode():
                logits: np.ndarray = forward(images).float().numpy()
            return logits

        return run

    answer(prepare, Path(expected))


if __name__ == "__main__":
    main(*sys.argv[1:])
