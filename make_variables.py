"""The targets and variables that a person has given to make and that make would ignore: one sentence for each.

The Makefile runs `make_variables.py "serve" "BUNDEL"` before all else, so this has the standard library alone. The
Makefile's own help says which variables a target has.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path

HERE = Path(__file__).parent
HELP = re.compile(r"^([a-z-]+):.*?## (.*)", re.MULTILINE)
SETTING = re.compile(r'^    (\w+): .*\n    """', re.MULTILINE)  # a field in app/settings.py
ALIKE = 0.7  # from 0 to 1: so much a name has to be like another one for that to be meant
ALWAYS = ("PYTHON", "VENV", "PARITY", "BENCH", "SHELL", "MAKEFLAGS")
OF_OTHERS = ("PIP_", "HF_")  # how names begin that pip and Hugging Face's libraries read: make hands them on
INSTEAD = {
    ("serve", "CHECKPOINT"): "Export it first: make export CHECKPOINT=... OUT=bundles/NAME",
    ("image", "CHECKPOINT"): "Export it first: make export CHECKPOINT=... OUT=bundles/NAME",
    ("export", "BUNDLE"): "OUT= is the bundle to write, and make serve BUNDLE= serves it",
}


def main(targets: Iterable[str], given: Iterable[str]) -> None:
    print(" ".join(refusals([*targets] or ["help"], [*given])).removesuffix("."))  # noqa: T201 (make adds its own)


def refusals(targets: list[str], given: list[str]) -> Iterator[str]:
    """A sentence for each target that there is not, and for each variable that none of them takes."""
    variables = {name: re.findall(r"\b([A-Z_]+)=", text) for name, text in HELP.findall(_text("Makefile"))}
    if unknown := [target for target in targets if target not in variables]:
        for target in unknown:
            yield f"{target} is not a target of make{_nearest(target, variables) or '; `make help` lists them.'}"
        return
    settings = [f"VIT_{field.upper()}" for field in SETTING.findall(_text("app/settings.py"))]
    known = [name for target in targets for name in variables[target]]
    taken = [*known, *(settings if "serve" in targets else ())]
    for name in given:
        if name not in (*taken, *ALWAYS) and not name.startswith(OF_OTHERS):
            yield _refusal(name, " ".join(targets), known, taken, variables)


def _refusal(name: str, target: str, known: list[str], taken: list[str], variables: dict[str, list[str]]) -> str:
    refused = f"{name} is not a variable of make {target}"
    takes = f"{refused}, which takes {_listed(known)}."
    if instead := INSTEAD.get((target, name)):
        return f"{takes} {instead}."
    if others := [f"make {other}" for other, names in variables.items() if name in names]:
        return f"{takes} It is one of {' and '.join(others)}."
    setting = f"VIT_{name.upper()}"
    if near := _nearest(setting if setting in taken and name.upper() not in known else name.upper(), taken):
        return refused + near
    return f"{takes} Variables for other programs stand before make: {name}=... make {target}"


def _nearest(name: str, names: Iterable[str]) -> str:
    """A question, if one of `names` is like this one."""
    found = get_close_matches(name, names, n=1, cutoff=ALIKE)
    return f": is {found[0]} meant?" if found else ""


def _listed(known: list[str]) -> str:
    return ", ".join(f"{name}=" for name in dict.fromkeys(known)) or "no variables"


def _text(file: str) -> str:
    return (HERE / file).read_text(encoding="utf-8")


if __name__ == "__main__":
    main(*(argument.split() for argument in sys.argv[1:]))
