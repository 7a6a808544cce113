"""Ray Serve: decoding in `__call__`, the model behind `@serve.batch` (docs.ray.io, serve, advanced-guides).

A replica asks for as many processors as it has threads.
"""

import time

import ray
from ray import serve
from starlette.requests import Request

from tests.benchmarks.servers.classifier import Classifier
from tests.benchmarks.servers.vit import MAX_WAIT_S, Pixels, Prediction, decode, number


@serve.deployment(
    num_replicas=number("INSTANCES"), ray_actor_options={"num_cpus": number("THREADS")}, max_ongoing_requests=64
)
class ViT:
    def __init__(self) -> None:
        self.classifier = Classifier()

    @serve.batch(max_batch_size=number("BATCH"), batch_wait_timeout_s=MAX_WAIT_S)
    async def classify(self, pixels: list[Pixels]) -> list[list[Prediction]]:
        return self.classifier(pixels)

    async def __call__(self, request: Request) -> dict[str, list[Prediction]]:
        return {"predictions": await self.classify(decode(await request.body()))}


if __name__ == "__main__":
    ray.init(num_cpus=number("INSTANCES") * number("THREADS"), include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": number("PORT")})
    serve.run(ViT.bind())  # type: ignore[attr-defined]  # `serve.deployment` has made a Deployment of the class
    while True:
        time.sleep(60)
