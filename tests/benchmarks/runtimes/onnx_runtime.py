"""`python -m tests.benchmarks.runtimes.onnx_runtime GRAPH EXPECTED`."""

import sys
from pathlib import Path

import onnxruntime as ort

from app.machine import allowed_cores
from tests.benchmarks.runtimes.conversation import Run, answer, normalised


def main(graph: str, expected: str) -> None:
    options = ort.SessionOptions()
    options.intra_op_num_threads = allowed_cores()
    opened = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    (images,) = opened.get_inputs()

    def prepare(batch: int) -> Run:
        feed = {images.name: normalised(batch)}
        return lambda: opened.run(None, feed)[0]  # logits are the first output

    answer(prepare, Path(expected))


if __name__ == "__main__":
    main(*sys.argv[1:])
