"""OpenVINO behind FastAPI, arranged as its Model Server is: one compiled model, and requests that wait for a free slot.

The slots are an AsyncInferQueue of as many as the compiled model finds best for its performance hint (docs.openvino.ai,
"high-level performance hints"). Pixels are normalised in the compiled model, by its PrePostProcessor.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import openvino
import uvicorn
from fastapi import FastAPI, UploadFile
from openvino.preprocess import PrePostProcessor

from lab.benchmarks.servers.vit import MAX_WAIT_S, Prediction, crop, graph, number, predictions

Answer = asyncio.Future[list[Prediction]]
Waiting = tuple[asyncio.AbstractEventLoop, Answer]

queue: openvino.AsyncInferQueue
turn = threading.Lock()  # two threads that start at once may be given one slot


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    global queue
    options = {"PERFORMANCE_HINT": "THROUGHPUT", "INFERENCE_NUM_THREADS": number("THREADS")}
    if streams := os.environ["VIT_BENCH_STREAMS"]:
        options["NUM_STREAMS"] = int(streams)
    if not os.environ["VIT_BENCH_PINNED"]:
        options["ENABLE_CPU_PINNING"] = False
    if precision := os.environ["VIT_BENCH_PRECISION"]:
        options["INFERENCE_PRECISION_HINT"] = precision
    device = "CPU"
    if (batch := number("BATCH")) > 1:
        device = f"BATCH:CPU({batch})"  # automatic batching of waiting requests
        options["AUTO_BATCH_TIMEOUT"] = round(MAX_WAIT_S * 1000)  # its default is a second
    queue = openvino.AsyncInferQueue(openvino.Core().compile_model(network(), device, options))
    queue.set_callback(answered)
    yield
    queue.wait_all()


def network() -> openvino.Model:
    """One image of uint8 pixels in, logits out. This project's graphs take pixels themselves."""
    found = openvino.Core().read_model(str(graph()))
    if graph().name == "classify.onnx":
        found.reshape([1, 224, 224, 3])
        return found
    found.reshape([1, 3, 224, 224])
    steps = PrePostProcessor(found)
    steps.input().tensor().set_element_type(openvino.Type.u8).set_layout(openvino.Layout("NHWC"))
    steps.input().model().set_layout(openvino.Layout("NCHW"))
    steps.input().preprocess().convert_element_type(openvino.Type.f32).mean(127.5).scale(127.5)
    return steps.build()


def answered(request: openvino.InferRequest, waiting: Waiting) -> None:
    """Runs in a thread of OpenVINO."""
    loop, future = waiting
    (best,) = predictions(request.get_output_tensor(0).data)
    loop.call_soon_threadsafe(future.set_result, best)


app = FastAPI(lifespan=lifespan)


@app.post("/predict", response_model=None)
async def predict(file: UploadFile) -> dict[str, list[Prediction]]:
    loop = asyncio.get_running_loop()
    future: Answer = loop.create_future()
    await asyncio.to_thread(start, await file.read(), (loop, future))
    return {"predictions": await future}


def start(jpeg: bytes, waiting: Waiting) -> None:
    pixels = np.ascontiguousarray(crop(jpeg)[np.newaxis])
    with turn:
        queue.start_async(pixels, waiting)  # waits for a free slot


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=number("PORT"), log_level="warning")
