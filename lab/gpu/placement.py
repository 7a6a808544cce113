"""`python -m lab.gpu.placement FILE.onnx...`: which nodes ONNX Runtime leaves to the CPU beside a GPU.

Prints JSON, for each file: those operators, and how many nodes are for the GPU; or why ONNX Runtime refuses the graph.
"""

import json
import sys
from collections import Counter
from typing import Any

import onnxruntime as ort

from app.inference.cuda.engine import PROVIDER_OPTIONS, CudaEngine


def main() -> None:
    print(json.dumps({file: placed(file) for file in sys.argv[1:]}))


def placed(file: str) -> dict[str, Any]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    try:
        session = ort.InferenceSession(
            file, options, providers=[(CudaEngine.provider, PROVIDER_OPTIONS)], enable_fallback=0
        )
    except Exception as error:
        return {"refused": str(error)}
    operators: dict[str, Counter[str]] = {}
    for part in session.get_provider_graph_assignment_info():
        operators.setdefault(part.ep_name, Counter()).update(node.op_type for node in part.get_nodes())
    return {"gpu": operators[CudaEngine.provider].total(), "cpu": operators.get("CPUExecutionProvider", Counter())}


if __name__ == "__main__":
    main()
