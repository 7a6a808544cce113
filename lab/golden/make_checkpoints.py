"""Write checkpoints and numbers of transformers, timm and OpenCLIP into tests/golden/checkpoints.

`PYTHONPATH=. python lab/golden/make_checkpoints.py`, where these libraries are. The others are of formats that are
final: Google's, those of facebookresearch, of vit-pytorch and of torchvision. What wrote them is in the history:
`git show 988699ac:lab/golden/peers/google.py`, and facebook.py, lucidrains.py and torchvision.py beside it.
"""

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
