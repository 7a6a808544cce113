"""Evidence for a text: what tokens add to the logit of a label that comes with a request."""

import numpy as np
import numpy.typing as npt

from app.bundle import Manifest
from app.maps.evidence import LabelEvidence
from app.maps.record import Maps


def evidence_of(
    text: str, place: int, maps: Maps, row: int, vector: npt.NDArray[np.float32], manifest: Manifest
) -> LabelEvidence:
    """For the logit of a text, scale * cosine + bias, which stands in this `place` among the labels of the request. The
    norm of the image's embedding is held at its value. `maps` have in this `row` the evidence for the text's `vector`
    (features,).
    """
    assert manifest.text is not None
    exact = maps.embedding.astype(np.float64)
    factor = manifest.text.scale / (float(np.linalg.norm(exact)) or 1.0)
    return LabelEvidence(
        label=text,
        index=place,
        tokens=maps.evidence[row] * np.float32(factor),
        rest=maps.evidence_rest[row] * np.float32(factor) + np.array([0, manifest.text.bias], np.float32),
        logit=factor * float(exact @ vector) + manifest.text.bias,
    )
