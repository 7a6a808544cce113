"""FastAPI and a transformers pipeline, in the two usual ways.

/plain: a route that calls the pipeline, which FastAPI runs in its thread pool. /batched: one loop that collects waiting
images and runs them as a batch (huggingface.co/docs/transformers/pipeline_webserver).
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO

import torch
import uvicorn
from fastapi import FastAPI, UploadFile
from PIL import Image
from transformers import Pipeline, pipeline

from lab.benchmarks.servers.vit import MAX_WAIT_S, Prediction, graph, number

Answer = asyncio.Future[list[Prediction]]

queue: asyncio.Queue[tuple[Image.Image, Answer]] = asyncio.Queue()
pipe: Pipeline


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    global pipe
    torch.set_num_threads(number("THREADS"))
    dtype = os.environ["VIT_BENCH_DTYPE"]
    pipe = pipeline("image-classification", str(graph()), device="cpu", dtype=dtype, top_k=5)
    task = asyncio.create_task(collect())
    yield
    task.cancel()


app = FastAPI(lifespan=lifespan)


@app.post("/plain", response_model=None)
def plain(file: UploadFile) -> dict[str, list[Prediction]]:
    return {"predictions": pipe(Image.open(file.file))}


@app.post("/batched", response_model=None)
async def batched(file: UploadFile) -> dict[str, list[Prediction]]:
    future: Answer = asyncio.get_running_loop().create_future()
    await queue.put((Image.open(BytesIO(await file.read())), future))
    return {"predictions": await future}


async def collect() -> None:
    while True:
        waiting = [await queue.get()]
        while len(waiting) < number("BATCH"):
            try:
                waiting.append(await asyncio.wait_for(queue.get(), timeout=MAX_WAIT_S))
            except TimeoutError:
                break
        answers = pipe([image for image, _ in waiting], batch_size=len(waiting))
        for (_, future), answer in zip(waiting, answers, strict=True):
            future.set_result(answer)


if __name__ == "__main__":
    this = "lab.benchmarks.servers.transformers_app:app"
    uvicorn.run(this, host="127.0.0.1", port=number("PORT"), workers=number("INSTANCES"), log_level="warning")
