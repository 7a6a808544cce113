"""The images that a bundle knows, so that the service can tell how familiar another one is."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from app import bundle
from app.bundle import Precision
from app.inference.engine import Engine
from app.inference.familiarity import Familiarity
from export.agreement import BATCH, Both
from export.images import Images
from export.messages import warn
from model.checkpoints.checkpoint import Checkpoint, KnownImages, first_few

AS_LEARNED: tuple[Precision, ...] = ("fp32", "fp16")  # whose embeddings are those of PyTorch but for rounding
FEWEST = 40  # held-out images; of fewer, less than two are in a share of 0.05


class Known(NamedTuple):
    learned: npt.NDArray[np.float32]  # embeddings (N - n, F) of images that have changed the graph
    held_out: npt.NDArray[np.float32]  # of others (n, F)
    classes: npt.NDArray[np.int64]  # (N,): the labels that the model gives both; all alike without a head
    source: bundle.Source

    def write(self, file: Path) -> bundle.Familiarity:
        Familiarity.learn(self.learned, self.held_out, self.classes).write(file)
        return bundle.Familiarity(pictures=len(self.classes), held_out=len(self.held_out), source=self.source)


def known_images(
    checkpoint: Checkpoint, precision: Precision, given: Images | None, engine: Engine, both: Both | None
) -> Known | None:
    """Those that the checkpoint has brought, or else a person's own, by the embeddings of the lean graph. None if there
    are none, or too few; the reason is written to stderr.

    `both` is what was computed for the judged ones of the images that are `given`.
    """
    brought = checkpoint.known
    if brought and precision in AS_LEARNED and not brought.changed_by:
        known = Known(brought.learned.numpy(), brought.held_out.numpy(), _classes(checkpoint, brought), "fit")
    elif given and both:
        runs = [engine.run("classify", given.ranges[i : i + BATCH]) for i in range(0, len(given.ranges), BATCH)]
        learned = {name: np.concatenate([run[name] for run in runs]) for name in both.lean}
        embeddings = learned["embedding"], both.lean["embedding"]
        logits = [lean.get("logits", np.zeros((len(lean["embedding"]), 1))) for lean in (learned, both.lean)]
        known = Known(*embeddings, np.concatenate(logits).argmax(1), "folder")
    else:
        if brought:
            how = f"with another {first_few(brought.changed_by)}" if brought.changed_by else f"in {precision}"
            _say(f"embeddings {how} are others than those of the checkpoint. Give --pictures FOLDER")
        return None
    if len(known.held_out) < FEWEST:
        _say(f"{len(known.held_out)} images are held out, and {FEWEST} are needed")
        return None
    return known


@torch.no_grad()
def _classes(checkpoint: Checkpoint, known: KnownImages) -> npt.NDArray[np.int64]:
    embeddings = torch.cat([known.learned, known.held_out])
    if not checkpoint.config.num_classes:
        return np.zeros(len(embeddings), np.int64)
    classes: npt.NDArray[np.int64] = checkpoint.model.head(checkpoint.model.head_norm(embeddings)).argmax(1).numpy()
    return classes


def _say(reason: str) -> None:
    warn(f"Familiarity is not measured: {reason}.")
