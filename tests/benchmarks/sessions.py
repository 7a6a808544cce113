"""`python -m tests.benchmarks.sessions BUNDLE`: what each way of holding two sessions costs, for docs/engine.md.

Every variant runs in its own process with one thread. Memory is the kernel's count since before the sessions:
anonymous, and mapped from files (a page that both sessions map counts twice).
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

from app.bundle import WEIGHTS
from app.inference.cpu import FILES
from tests.benchmarks.page import table

BATCHES, RUNS = (1, 4), 7
VARIANTS = {
    "ONNX Runtime's default": (),
    "no memory pattern (ours)": ("no pattern",),
    "and one arena for both": ("no pattern", "one arena"),
    "and the arena shrinks after each run": ("no pattern", "shrink"),
    "no arena, no memory pattern": ("no pattern", "no arena"),
    "weights given by hand, shared": ("no pattern", "shared"),
    "weights not prepacked": ("no pattern", "not prepacked"),
    "not prepacked and shared": ("no pattern", "not prepacked", "shared"),
}


def main(bundle: str) -> None:
    print(f"weights {(Path(bundle) / WEIGHTS).stat().st_size / 2**20:.0f} MiB\n")
    rows = []
    for name, ideas in VARIANTS.items():
        command = [sys.executable, "-m", "tests.benchmarks.sessions", bundle, *ideas, "-"]
        rows.append({"variant": name, **json.loads(subprocess.run(command, capture_output=True, check=True).stdout)})
    for batch in BATCHES:
        base = rows[0][f"ms b={batch}"]
        for row in rows:
            row[f"b={batch}, relative"] = round(row.pop(f"ms b={batch}") / base, 2)
    print(table(rows))


def variant(bundle: Path, ideas: set[str]) -> dict[str, float]:
    if "one arena" in ideas:
        memory = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
        ort.create_and_register_allocator(memory, ort.OrtArenaCfg({"max_mem": 0, "arena_extend_strategy": 0}))
    shared: dict[int, ort.OrtValue] = {}
    before = resident_mib()
    start = time.process_time()
    sessions = [session(bundle / file, ideas, shared) for file in FILES.values()]
    row = {"create, s of a core": round(time.process_time() - start, 2)}
    shrinking = ort.RunOptions()
    if "shrink" in ideas:
        shrinking.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    (images,) = sessions[0].get_inputs()
    for batch in BATCHES:
        pixels = np.zeros((batch, *images.shape[1:]), dtype=np.uint8)
        times = []
        for _ in range(RUNS):
            start = time.process_time()
            for s in sessions:
                s.run(None, {"images": pixels}, shrinking)
            times.append(time.process_time() - start)
        row[f"ms b={batch}"] = 1000 * statistics.median(times)
        row |= {f"{kind}, MiB, b={batch}": value - before[kind] for kind, value in resident_mib().items()}
    return row


def session(path: Path, ideas: set[str], shared: dict[int, ort.OrtValue]) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.enable_mem_pattern = "no pattern" not in ideas
    options.enable_cpu_mem_arena = "no arena" not in ideas
    if "one arena" in ideas:
        options.add_session_config_entry("session.use_env_allocators", "1")
    if "not prepacked" in ideas:
        options.add_session_config_entry("session.disable_prepacking", "1")
    if "shared" in ideas:
        weights = np.memmap(path.with_name(WEIGHTS), mode="r")
        for tensor in onnx.load(path, load_external_data=False).graph.initializer:
            where = {entry.key: entry.value for entry in tensor.external_data}
            if where:
                offset, length = int(where["offset"]), int(where["length"])
                dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
                array = weights[offset : offset + length].view(dtype).reshape(tuple(tensor.dims))
                options.add_initializer(tensor.name, shared.setdefault(offset, ort.OrtValue.ortvalue_from_numpy(array)))
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def resident_mib() -> dict[str, int]:
    lines = [line.split() for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]]
    kib = {line[0]: int(line[1]) for line in lines}
    return {"anonymous": kib["Anonymous:"] // 1024, "from files": (kib["Rss:"] - kib["Anonymous:"]) // 1024}


if __name__ == "__main__":
    if sys.argv[-1] == "-":
        print(json.dumps(variant(Path(sys.argv[1]), set(sys.argv[2:-1]))))
    else:
        main(sys.argv[1])
