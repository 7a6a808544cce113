"""Write tests/golden/checkpoints: `PYTHONPATH=. python tests/golden/make_checkpoints.py`, where the libraries are."""

import importlib
from pathlib import Path

import torch

from tests.golden.torchvision_operators import declare

HERE = Path(__file__).parent

if __name__ == "__main__":
    torch.set_num_threads(1)
    operators = declare()  # kept while the peers import torchvision
    for peer in sorted((HERE / "peers").glob("*.py")):
        importlib.import_module(f"tests.golden.peers.{peer.stem}").make(HERE / "checkpoints")
