"""The processor on which something is measured."""

import platform
import re
from pathlib import Path

from app.machine import instructions


def processor() -> str:
    """Name, and the instructions that matrix products use where it has them."""
    name = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    has = instructions()
    wide = [flag for flag in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16") if flag in has]
    return f"{name[1] if name else platform.machine()} ({', '.join(wide)})"
