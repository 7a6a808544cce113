"""`python -m lab.parity [peer ...]`: compare with other libraries; write parity.json and its summary in the docs.

`make parity` installs the libraries first. With names, only those peers are compared, and the rows of the others stay.
Exits with 1 when a difference is larger than rounding explains.
"""

import argparse
import sys
from importlib.metadata import version

import torch
from tqdm import tqdm

from lab.benchmarks.processor import processor
from lab.golden.torchvision_operators import declare
from lab.parity import huggingface, preprocessing, pytorch_image_models, record, summary, torchvision

PEERS = {"timm": pytorch_image_models, "transformers": huggingface, "torchvision": torchvision}
PEERS[record.PIPELINES] = preprocessing


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.parity", description=__doc__.partition("\n")[0])
    parser.add_argument("peers", nargs="*", metavar="peer", help=f"{', '.join(PEERS)}; all when none is named")
    named = parser.parse_args().peers or list(PEERS)
    if unknown := set(named) - set(PEERS):
        parser.error(f"{', '.join(sorted(unknown))} is not one of {', '.join(PEERS)}")

    torch.set_num_threads(1)
    operators = declare()
    sections, far = record.read(), []
    for name in named:
        rows = list(tqdm(PEERS[name].rows(), desc=name))
        title = "Preprocessing" if name == record.PIPELINES else f"{name} {version(name).partition('+')[0]}"
        sections[name] = record.Section(title=title, rows=rows, processor=processor())
        far += [f"{row.name} by {row.error:.0e}" for row in rows if row.far]
    del operators
    record.write(sections)
    summary.write(sections)
    if far:
        sys.exit(f"differences larger than rounding explains: {', '.join(far)}")


if __name__ == "__main__":
    main()
