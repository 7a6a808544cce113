"""BentoML: one service with adaptive batching (docs.bentoml.com, get-started/adaptive-batching).

`max_latency_ms` is left at its minute: it is the latency beyond which requests are refused, not the wait for a batch.
"""

from pathlib import Path

import bentoml

from lab.benchmarks.servers.vit import Classifier, Prediction, decode, number


@bentoml.service(workers=number("INSTANCES"))
class ViT:
    def __init__(self) -> None:
        self.classify = Classifier()

    @bentoml.api(route="/predict", batchable=True, max_batch_size=number("BATCH"))
    def predict(self, images: list[Path]) -> list[list[Prediction]]:
        return self.classify([decode(image.read_bytes()) for image in images])
