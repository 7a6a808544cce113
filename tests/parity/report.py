"""docs/parity.md: its layout, and putting new sections in place of old ones."""

import re
from collections.abc import Iterable, Sequence

from tests.parity.comparison import Pipeline, Row

HEADER = """# Parity

`make parity` writes this page. Each network is built by its own library, with random weights that make every parameter
matter, and saved as that library saves it. `load_checkpoint` loads the file, and both run on noise in float32 on the
CPU. An error is the largest absolute difference of a logit, or of a number of an embedding where the network has no
head, at the network's own size and at another size, to which both interpolate the positions; 0 means that every bit is
equal. Networks are narrow and shallow where the library has arguments for that; their structure is complete.
"""


def networks(title: str, rows: Sequence[Row]) -> str:
    """Summary, table and refusals of one library, as Markdown."""
    loaded, refused = [row for row in rows if not row.refused], [row for row in rows if row.refused]
    worst = max(loaded, key=lambda row: row.error)
    lines = [
        f"## {title}",
        "",
        f"{len(loaded)} of {len(rows)} networks load. The largest error is {worst.error:.0e} of the largest logit"
        f" ({worst.name}); {sum(row.error <= 1e-5 for row in loaded)} are within 1e-5.",
        "",
        *modules(rows),
        "| network | size | error | other size | error | largest logit |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in loaded:
        measured = (f"{sides(size)} | {shown(error)}" for size, error in zip(row.sizes, row.errors, strict=True))
        lines.append(f"| {row.name} | {' | '.join(measured)} | {row.largest:.1f} |")
    if refused:
        lines += ["", "Refused, with the reason:", "", *(f"- {row.name}: {row.refused}" for row in refused)]
    return "\n".join([*lines, ""])


def modules(rows: Sequence[Row]) -> list[str]:
    """A table of the library's modules, if its networks are in several."""
    names = dict.fromkeys(row.module for row in rows if row.module)
    if not names:
        return []
    lines = ["| module | networks | load | largest error |", "| --- | --- | --- | --- |"]
    for name in names:
        of_module = [row for row in rows if row.module == name]
        errors = [error for row in of_module for error in row.errors]
        loaded = sum(not row.refused for row in of_module)
        lines.append(f"| `{name}` | {len(of_module)} | {loaded} | {shown(max(errors, default=0.0))} |")
    return [*lines, ""]


def pipelines(title: str, rows: Sequence[Pipeline]) -> str:
    """Summary, table and known differences of the libraries' preprocessing, as Markdown."""
    alike = sum(row.equal == row.images for row in rows)
    lines = [
        f"## {title}",
        "",
        f"{alike} of {len(rows)} pipelines give the service's pixels for every image. The output of each library's own"
        " pipeline is converted back to 8 bits with the mean and deviation that `load_checkpoint` reads, and compared"
        " with the pixels that the service gives its network. A difference is that of one value, the largest, in 8-bit"
        " steps; values near 1e-05 come from rounding to float32 before the conversion. The images are noise and drawn"
        " shapes in turn, portrait and landscape, with sides of 20 to 700 pixels.",
        "",
        "| pipeline | input | equal images | difference |",
        "| --- | --- | --- | --- |",
    ]
    for row in rows:
        lines.append(f"| {row.name} | {sides(row.size)} | {row.equal} of {row.images} | {shown(row.error)} |")
    known = [row for row in rows if row.reason]
    if known:
        lines += ["", "Not equal, with the reason:", "", *(f"- {row.name}: {row.reason}" for row in known)]
    return "\n".join([*lines, ""])


def updated(report: str, fresh: dict[str, str], order: Iterable[str]) -> str:
    """The report with `fresh` sections by peer, the others as they were; a heading's first word is the peer's name."""
    kept = {}
    for section in re.split(r"^(?=## )", report, flags=re.MULTILINE)[1:]:
        name = section.removeprefix("## ").split()[0].lower()
        kept[name] = section.rstrip("\n") + "\n"
    sections = kept | fresh
    return "\n".join([HEADER, *(sections[name] for name in order if name in sections)])


def sides(size: tuple[int, int]) -> str:
    return f"{size[0]}×{size[1]}"


def shown(error: float) -> str:
    return f"{error:.0e}" if error else "0"
