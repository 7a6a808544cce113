"""Libraries that stand in for NVIDIA's, so that ONNX Runtime makes sessions for a GPU where there is none.

Every function that ONNX Runtime's CUDA provider asks of them says that it went well, and computes nothing. But ONNX
Runtime itself is the real one: it divides each graph between GPU and CPU by the kernels that it was built with, and
takes or refuses each option. They are compiled with gcc.
"""

import os
import re
import subprocess
from pathlib import Path

import onnxruntime

PROVIDER = Path(onnxruntime.__file__).parent / "capi" / "libonnxruntime_providers_cuda.so"
CUDNN = "libcudnn.so.9"  # opened by name, when a kernel asks for it
FULL = ("libcuda.so.1", CUDNN)  # the others are empty: any of the libraries may answer
SOURCE = Path(__file__).with_suffix(".c")


def build(folder: Path) -> None:
    """Write the libraries that the provider needs into `folder`."""
    needed = re.findall(r"\[(libcu\S+)\]", _output("readelf", "--dynamic", str(PROVIDER)))
    wanted = set(re.findall(r"\b((?:__)?cu[A-Za-z]\w*)", _output("nm", "-D", "--undefined-only", str(PROVIDER))))
    wanted |= {name.decode() for name in re.findall(rb"\0(cudnn[A-Z]\w+)(?=\0)", PROVIDER.read_bytes())}
    answered = set(re.findall(r"\b(cu\w+)\(", SOURCE.read_text()))
    others = folder / "others.c"
    others.write_text("".join(f"int {name}(void) {{ return 0; }}\n" for name in sorted(wanted - answered)))
    for library in [*needed, CUDNN]:
        sources = [str(SOURCE), str(others)] if library in FULL else ["-xc", os.devnull]
        subprocess.run(["gcc", "-w", "-shared", "-fPIC", "-o", str(folder / library), *sources], check=True)


def environment(folder: Path) -> dict[str, str]:
    """In which a process finds those libraries first."""
    return {**os.environ, "LD_LIBRARY_PATH": str(folder)}


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
