"""`python -m tests.parity [peer ...]`: compare with other libraries, and write docs/parity.md.

`make parity` installs the libraries first. With names, only those peers are compared and the other sections stay. Exits
with 1 when a difference is larger than rounding explains.
"""

import argparse
import sys
from pathlib import Path

import torch
from tqdm import tqdm

from tests.golden.torchvision_operators import declare
from tests.parity import huggingface, preprocessing, pytorch_image_models, torchvision
from tests.parity.report import networks, pipelines, updated

PEERS = {  # each with the layout of its section
    "timm": (pytorch_image_models, networks),
    "transformers": (huggingface, networks),
    "torchvision": (torchvision, networks),
    "preprocessing": (preprocessing, pipelines),
}
REPORT = Path("docs/parity.md")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.parity", description=__doc__.partition("\n")[0])
    parser.add_argument("peers", nargs="*", metavar="peer", help=f"{', '.join(PEERS)}; all when none is named")
    named = parser.parse_args().peers or list(PEERS)
    if unknown := set(named) - set(PEERS):
        parser.error(f"{', '.join(sorted(unknown))} is not one of {', '.join(PEERS)}")

    torch.set_num_threads(1)
    operators = declare()
    sections, far = {}, []
    for name in named:
        peer, layout = PEERS[name]
        found = list(tqdm(peer.rows(), desc=name))
        sections[name] = layout(peer.title(), found)
        far += [f"{row.name} by {row.error:.0e}" for row in found if not row.error <= row.rounding]
    del operators
    REPORT.write_text(updated(REPORT.read_text() if REPORT.exists() else "", sections, PEERS))
    if far:
        sys.exit(f"differences larger than rounding explains: {', '.join(far)}")


if __name__ == "__main__":
    main()
