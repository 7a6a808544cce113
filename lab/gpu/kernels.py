"""Where the time of a recorded run goes: each kernel that the GPU ran, as NVIDIA's CUPTI timed it."""

import re

import torch
from torch.profiler import ProfilerActivity, profile

from app.inference.cuda.recording import Recording
from lab.benchmarks.record import Rows
from lab.gpu.bundles import Place, Tables
from lab.gpu.parity import open_on_gpu

BATCH = 64
RUNS = 10


def measure(place: Place) -> Tables:
    tables: Tables = {}
    for name, bundle in place.bundles("b16-fp16", "s16-fp16").items():
        model, engine = open_on_gpu(bundle, BATCH)
        model.warm_up()
        for (graph, size), recording in engine._recordings.items():
            if size == BATCH:
                tables[f"{name}, {graph}, {BATCH} images"] = profiled(recording)
        del model, engine
    return tables


def profiled(recording: Recording) -> Rows:
    """The kernels of a replay, the longest first."""
    torch.cuda.init()
    recording.launch()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as found:
        for _ in range(RUNS):
            recording.launch()
        torch.cuda.synchronize()
    kernels = sorted(found.key_averages(), key=lambda kernel: -kernel.self_device_time_total)
    return [
        {
            "kernel": re.sub(r"\s+", " ", kernel.key).replace("|", "/")[:110],
            "launches": kernel.count // RUNS,
            "ms": round(kernel.self_device_time_total / RUNS / 1000, 3),
        }
        for kernel in kernels
        if kernel.self_device_time_total
    ]
