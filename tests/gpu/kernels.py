"""Where the time of a recorded run goes: each kernel that the GPU ran, as NVIDIA's CUPTI timed it."""

import re

import torch
from torch.profiler import ProfilerActivity, profile

from app.inference.cuda.recording import Recording
from tests.benchmarks.record import Rows
from tests.gpu.parity import open_on_gpu
from tests.gpu.place import Place, Tables

BATCH = 64
RUNS = 10
MOST = 14  # kernels of a table
KINDS = (  # of kernels by what their names hold; the first that fits
    ("matrix products", r"gemm|cutlass|xmma|nvjet|splitK"),
    ("attention", r"flash|fmha|sdpa|AttentionKernel|attention"),
    ("norms", r"LayerNorm|layer_norm"),
    ("copies", r"memcpy|memset|Memcpy|Memset|Transpose|Concat|Slice|Gather|Expand"),
)


def measure(place: Place) -> Tables:
    tables: Tables = {"kinds, ms of a run": []}
    for name, bundle in place.bundles("b16-fp16", "s16-fp16").items():
        model, engine = open_on_gpu(bundle, BATCH)
        engine.warm_up(model)
        for (graph, size), recording in engine._recordings.items():
            if size == BATCH:
                kernels = profiled(recording)
                tables["kinds, ms of a run"] += by_kind(f"{name}, {graph}", kernels)
                tables[f"{name}, {graph}, {BATCH} images"] = kernels[:MOST]
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


def by_kind(head: str, kernels: Rows) -> Rows:
    sums: dict[str, list[float]] = {}
    for kernel in kernels:
        kind = next((kind for kind, names in KINDS if re.search(names, str(kernel["kernel"]))), "the rest")
        total = sums.setdefault(kind, [0, 0])
        total[0] += float(kernel["ms"])
        total[1] += int(kernel["launches"])
    return [
        {"graph": head, "kind": kind, "ms": round(ms, 3), "launches": int(launches)}
        for kind, (ms, launches) in sorted(sums.items(), key=lambda item: -item[1][0])
    ]
