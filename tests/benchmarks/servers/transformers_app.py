"""FastAPI and a transformers pipeline, in the two ways that are about.

/plain: a route that calls the pipeline, which FastAPI runs in its thread pool. /batched: one loop that collects what
waits and runs it as a batch (huggingface.co/docs/transformers/pipeline_webserver).
"""

import asyncio
import os
from contextlib import asynccontextmanager
from io import BytesIO

import torch
import uvicorn
from fastapi import FastAPI, UploadFile
from PIL import Image
from transformers import pipeline

from tests.benchmarks.servers.vit import MAX_BATCH, MAX_WAIT_S, folder, port

queue = asyncio.Queue()


@asynccontextmanager
async def lifespan(app):
    global pipe
    torch.set_num_threads(int(os.environ["VIT_BENCH_THREADS"]))
    pipe = pipeline("image-classification", str(folder() / "transformers"), device="cpu", top_k=5)
    task = asyncio.create_task(collect())
    yield
    task.cancel()


app = FastAPI(lifespan=lifespan)


@app.post("/plain")
def plain(file: UploadFile):
    return {"predictions": pipe(Image.open(file.file))}


@app.post("/batched")
async def batched(file: UploadFile):
    future = asyncio.get_running_loop().create_future()
    await queue.put((Image.open(BytesIO(await file.read())), future))
    return {"predictions": await future}


async def collect():
    while True:
        waiting = [await queue.get()]
        while len(waiting) < MAX_BATCH:
            try:
                waiting.append(await asyncio.wait_for(queue.get(), timeout=MAX_WAIT_S))
            except TimeoutError:
                break
        answers = pipe([picture for picture, _ in waiting], batch_size=len(waiting))
        for (_, future), answer in zip(waiting, answers, strict=True):
            future.set_result(answer)


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=port(), log_level="warning")
