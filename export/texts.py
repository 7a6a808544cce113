"""The text tower of a bundle: its graph and its tokeniser, compared with the checkpoint's library."""

from pathlib import Path

import numpy as np
import onnx

from app.bundle import TEXT_GRAPH, TEXT_WEIGHTS, TOKENISER, KnownText, TextFacts
from app.inference.digits import digits
from app.inference.text import TextTower
from app.machine import allowed_cores
from export.onnx_file import externalise
from export.parity import ParityError
from export.trace import trace_texts
from model.checkpoints.checkpoint import Texts

TOLERANCE = 1e-5  # of each number of a vector of length 1


def write_texts(texts: Texts, folder: Path) -> tuple[TextFacts, KnownText]:
    """Write the text tower into the folder of a bundle. Raises ParityError if it does not give the library's vectors
    for the probes, from their letters on.
    """
    proto = trace_texts(texts.tower)
    externalise(proto, folder / TEXT_WEIGHTS)
    onnx.save(proto, folder / TEXT_GRAPH)
    texts.tokeniser.save(str(folder / TOKENISER))
    facts = TextFacts(length=texts.tower.config.length, scale=texts.scale, bias=texts.bias, parity=0.0)
    tower = TextTower(folder=folder, facts=facts, threads=allowed_cores())
    together = tower.embed(texts.probes)
    alone = np.concatenate([tower.embed([text]) for text in texts.probes])
    known = texts.known.numpy()
    parity = max(float(np.abs(found - known).max()) for found in (together, alone))
    if not parity <= TOLERANCE:
        raise ParityError(f"texts: the library and ONNX Runtime differ by {parity:.1e}, more than {TOLERANCE:.0e}")
    vector = tuple(digits(float(number)) for number in known[0])
    return facts.model_copy(update={"parity": parity}), KnownText(text=texts.probes[0], vector=vector)
