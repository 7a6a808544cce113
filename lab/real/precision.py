"""How far embeddings in lower precision are from those in fp32, and what that does to neighbours and to a probe."""

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from app.bundle import Precision
from export.calibration import calibration_error
from export.embeddings import nearest
from lab.benchmarks.record import Row, Rows
from lab.real.bundles import engine_of, outputs, pixels
from lab.real.data import Data
from model.fit.least_squares import LinearMap, least_squares
from model.fit.probe import probe_temperature

FORMS: dict[str, tuple[Precision, bool]] = {  # with photographs for the ranges, or without
    "fp32": ("fp32", False),
    "bf16": ("bf16", False),
    "int8, ranges from photographs": ("int8", True),
    "int8, ranges from drawn images": ("int8", False),
}


def measure(data: Data) -> Rows:
    files = [*data.stamps["train"], *data.stamps["test"]]
    images, learned = pixels(data, files), len(data.stamps["train"])
    names = sorted({file.parent.name for file in files})
    labels = torch.tensor([names.index(file.parent.name) for file in files])
    embeddings = {}
    for name, (precision, photos) in FORMS.items():
        with engine_of(data, precision, photos=photos) as engine:
            embeddings[name] = outputs(engine, "classify", images)["embedding"]
    exact = embeddings["fp32"]
    head = least_squares(torch.from_numpy(exact[:learned]), labels[:learned], count=len(names))
    scale = probe_temperature(head.left_out, labels[:learned])
    return [
        {"bundle": name, **_apart(exact, found), **_probed(head, scale, found[learned:], labels[learned:])}
        for name, found in embeddings.items()
    ]


def _apart(exact: npt.NDArray[np.float32], found: npt.NDArray[np.float32]) -> Row:
    of_exact, of_found = (F.normalize(torch.from_numpy(rows).double()) for rows in (exact, found))
    cosines = (of_exact * of_found).sum(1).numpy()
    return {
        "images": len(found),
        "cosine, median": f"{np.median(cosines):.5f}",
        "least": f"{cosines.min():.4f}",
        "same nearest image, %": round(100 * (nearest(of_exact) == nearest(of_found)).double().mean().item(), 1),
    }


def _probed(head: LinearMap, scale: float, found: npt.NDArray[np.float32], labels: torch.Tensor) -> Row:
    """What a head that was learned in fp32 says of images held out."""
    logits = (torch.from_numpy(found).double() @ head.weight.T + head.bias) / scale
    return {
        "labels of a probe, % right": round(100 * (logits.argmax(1) == labels).double().mean().item(), 1),
        "calibration error, %": round(100 * calibration_error(logits.numpy(), labels.numpy()), 1),
    }
