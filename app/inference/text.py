"""The text tower of a bundle: texts to their vectors in the space of the images' embeddings."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from app.bundle import TEXT_GRAPH, TOKENISER, Bundle, KnownText, TextFacts
from app.errors import InvalidParameter
from app.inference.engine import failures_as_device_errors
from app.inference.known_answer import WrongAnswer
from app.inference.onnxruntime import session
from app.inference.phrases import Vectors

TOLERANCE = 1e-4  # of each number of the known vector


class TextTower:
    """Runs on the CPU in ONNX Runtime, also where a GPU has the images."""

    def __init__(self, *, folder: Path, facts: TextFacts, threads: int) -> None:
        """`folder` is that of a bundle; `threads` are the cores to use. Raises DeviceError."""
        self.facts = facts
        with failures_as_device_errors("ONNX Runtime cannot run the text tower of this bundle"):
            self._tokeniser = Tokenizer.from_file(str(folder / TOKENISER))
            self._session = session(folder / TEXT_GRAPH, threads)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """(texts, features). The tokeniser pads, and cuts where the library does. Raises InvalidParameter for a text
        with more tokens than the tower reads.
        """
        ids = [encoding.ids for encoding in self._tokeniser.encode_batch([*texts])]
        if len(ids[0]) > self.facts.length:
            raise InvalidParameter(f"The text tower reads at most {self.facts.length} tokens, and a text has more.")
        (vectors,) = self._session.run(None, {"input_ids": np.array(ids, np.int64)})
        return np.asarray(vectors)

    def check(self, known: KnownText) -> None:
        """Raises WrongAnswer unless the known text has the vector that PyTorch computed."""
        apart = float(np.abs(self.embed([known.text])[0] - np.array(known.vector)).max())
        if not apart <= TOLERANCE:
            raise WrongAnswer(
                f"The text tower computes wrong numbers: the vector of the bundle's known text differs from PyTorch by "
                f"{apart:.1e}, and {TOLERANCE:.1e} is allowed"
            )


def open_text_tower(bundle: Bundle, *, threads: int) -> TextTower:
    """The text tower of a bundle that has one, when it has given the known answer. Raises DeviceError."""
    manifest = bundle.manifest
    assert manifest.text
    assert manifest.known_text
    tower = TextTower(folder=bundle.folder, facts=manifest.text, threads=threads)
    tower.check(manifest.known_text)
    return tower
