"""`python -m tests.benchmarks.runtimes.ours BUNDLE openvino|onnxruntime classify|explain EXPECTED`: as it is served."""

import sys
from pathlib import Path

from app.bundle import load_bundle
from app.inference.device import open_model
from app.inference.engine import Graph
from app.settings import Settings
from tests.benchmarks.runtimes.conversation import Run, answer, pixels


def main(bundle: str, engine: str, graph: str, expected: str) -> None:
    settings = Settings.model_validate({"device": "cpu", "engine": engine})
    opened = open_model(settings=settings, bundle=load_bundle(Path(bundle))).engine
    asked: Graph = "explain" if graph == "explain" else "classify"

    def prepare(batch: int) -> Run:
        images = pixels(batch)
        return lambda: opened.run(asked, images)["logits"]

    answer(prepare, Path(expected))


if __name__ == "__main__":
    main(*sys.argv[1:])
