"""`python -m tests.parity`: load networks of other libraries, compare logits, write docs/parity.md.

`make parity` installs the libraries first. Exits with 1 when one is further away than rounding explains.
"""

import sys
from pathlib import Path

import torch
from tqdm import tqdm

from tests.parity import pytorch_image_models
from tests.parity.comparison import Peer, Row

PEERS: tuple[Peer, ...] = (pytorch_image_models,)
REPORT = Path("docs/parity.md")
HEADER = """# Parity

Written by `make parity`. Each network is built by its own library with random weights that make every parameter matter,
saved as that library saves it, loaded by `load_checkpoint`, and run on noise by both in float32 on the CPU. An error
is the largest absolute difference of a logit, at the network's own size and at another one, to which both sides
interpolate the positions; 0 is equality of every bit. Networks are narrow and shallow where the library has arguments
for that; the structure is the whole one.
"""


def main() -> None:
    torch.set_num_threads(1)
    sections, far = [], []
    for peer in PEERS:
        found = list(tqdm(peer.rows(), desc=peer.TITLE, unit="network"))
        sections.append(section(peer.TITLE, found))
        far += [f"{row.name} by {row.error:.0e}" for row in found if not row.error <= row.rounding]
    REPORT.write_text("\n".join([HEADER, *sections]))
    if far:
        sys.exit(f"further away than rounding explains: {', '.join(far)}")


def section(title: str, rows: list[Row]) -> str:
    """Summary, table and refusals of one library, as Markdown."""
    loaded, refused = [row for row in rows if not row.refused], [row for row in rows if row.refused]
    worst = max(loaded, key=lambda row: row.error)
    lines = [
        f"## {title}",
        "",
        f"{len(loaded)} of {len(rows)} networks load. The largest error is {worst.error:.0e} of the largest logit"
        f" ({worst.name}); {sum(row.error <= 1e-5 for row in loaded)} are within 1e-5.",
        "",
        "| network | size | error | other size | error | largest logit |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in loaded:
        measured = (f"{h}×{w} | {shown(error)}" for (h, w), error in zip(row.sizes, row.errors, strict=True))
        lines.append(f"| {row.name} | {' | '.join(measured)} | {row.largest:.1f} |")
    if refused:
        lines += ["", "Refused, with the reason:", "", *(f"- {row.name}: {row.refused}" for row in refused)]
    return "\n".join([*lines, ""])


def shown(error: float) -> str:
    return f"{error:.0e}" if error else "0"


if __name__ == "__main__":
    main()
