"""Write tests/golden/checkpoints: `PYTHONPATH=. python lab/golden/make_checkpoints.py`, where the libraries are."""

import importlib
from pathlib import Path

import torch

from lab.golden.torchvision_operators import declare

HERE = Path(__file__).parent
OUT = Path("tests/golden/checkpoints")

if __name__ == "__main__":
    torch.set_num_threads(1)
    operators = declare()  # kept while the peers import torchvision
    for peer in sorted((HERE / "peers").glob("*.py")):
        importlib.import_module(f"lab.golden.peers.{peer.stem}").make(OUT)
