"""`python -m tests.benchmarks.runtimes.onnx_runtime GRAPH EXPECTED`."""

import sys
from pathlib import Path

from tests.benchmarks.graph import session
from tests.benchmarks.runtimes.conversation import Run, answer, normalised


def main(graph: str, expected: str) -> None:
    opened = session(Path(graph))
    (images,) = opened.get_inputs()

    def prepare(batch: int) -> Run:
        feed = {images.name: normalised(batch)}
        return lambda: opened.run(None, feed)[0]  # logits are the first output

    answer(prepare, Path(expected))


if __name__ == "__main__":
    main(*sys.argv[1:])
