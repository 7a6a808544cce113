"""What a command says, in the words of its user: variables of make, if make runs it, or else its own options."""

import os
import re
import sys
from typing import NoReturn

BY_MAKE = "BY_MAKE"  # set by the Makefile
FLAGS = ("replace", "calibrate")
VARIABLES = (
    *("checkpoint", "out", "labels", "prompt", "precision", "image-size", "pictures"),
    *("images", "method", "from-scratch"),
    *("masks", "limit", "bundle"),
)
# Of names from a stranger's file: what moves the cursor, changes colours, or turns the direction of text.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
COMMAND = re.compile(r"\bvit-serve (export|fit|judge|serve)\b")
OPTION = re.compile(r"(?<![\w.])--([a-z-]+)( [^-\s]([^\s:]*[^\s:,;.])?)?")  # and its value, if it has one


def tell(sentence: str) -> None:
    print(worded(sentence))  # noqa: T201


def warn(sentence: str) -> None:
    print(worded(sentence), file=sys.stderr)  # noqa: T201


def stop(sentence: str) -> NoReturn:
    """End the command with status 1."""
    sys.exit(worded(sentence))


def worded(sentence: str) -> str:
    """`sentence`, which names commands and options as in vit-serve export --labels FILE, or for make as in make export
    LABELS=FILE.

    Options for which the Makefile has no variable are passed on by it: OPTIONS="--set heads=12". Control characters
    are escaped.
    """
    sentence = CONTROL.sub(lambda character: character[0].encode("unicode_escape").decode(), sentence)
    if BY_MAKE not in os.environ:
        return sentence
    return OPTION.sub(_of_make, COMMAND.sub(r"make \1", sentence)).replace('" OPTIONS="', " ")


def _of_make(option: re.Match[str]) -> str:
    name, value = option[1], option[2] or ""
    variable = name.upper().replace("-", "_")
    if name in FLAGS:
        return f"{variable}=yes{value}"
    return f"{variable}={value.strip()}" if name in VARIABLES else f'OPTIONS="{option[0]}"'
