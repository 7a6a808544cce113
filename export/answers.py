"""The answers of the float32 network and of the lean graph for the same images."""

import time
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt
import torch

from app.inference.engine import Engine
from export.images import Images
from export.progress import bars
from export.reference import normalised
from model.checkpoints.checkpoint import Checkpoint

BATCH = 8
TIME_LIMIT_S = {"drawn": 60.0, "folder": 600.0}  # no further batch is begun after it


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Logits (images, classes) of both, and the right labels (images,) where they are known."""

    expected: npt.NDArray[np.float32]  # of PyTorch
    lean: npt.NDArray[np.float32]  # of the lean graph
    labels: npt.NDArray[np.int64] | None


def answers(checkpoint: Checkpoint, images: Images, engine: Engine, *, time_limit_s: float | None = None) -> Answers:
    """Answers for the judged images, or for as many of them as `time_limit_s` allows; by default TIME_LIMIT_S."""
    end = time.monotonic() + (TIME_LIMIT_S[images.source] if time_limit_s is None else time_limit_s)
    judged = images.judged()
    expected: list[npt.NDArray[np.float32]] = []
    lean: list[npt.NDArray[np.float32]] = []
    right: list[int] = []
    with bars() as shown:
        for _ in shown.track(range(0, images.judged_images, BATCH), description="comparing with fp32"):
            if lean and time.monotonic() > end:
                break
            pixels, labels = zip(*islice(judged, BATCH), strict=True)
            batch = np.stack(pixels)
            with torch.inference_mode():
                expected.append(checkpoint.model(normalised(batch, checkpoint)).numpy())
            lean.append(engine.run("classify", batch)["logits"])
            right += labels
    return Answers(
        expected=np.concatenate(expected),
        lean=np.concatenate(lean),
        labels=np.array(right) if images.labelled else None,
    )
