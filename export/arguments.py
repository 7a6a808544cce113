"""Arguments that several commands of export/ take, and their parsers."""

import argparse
from typing import NoReturn

from export.messages import worded
from model.checkpoints import by_hand

PRECISIONS = ("fp32", "bf16", "int8", "fp16")  # app/bundle.py has them too, and takes most of a second to import
METHODS = ("probe", "finetune", "pretrain", "masked")  # of export/fit/methods.py, which needs PyTorch
FROM_SCRATCH = ("pretrain", "masked")  # those that begin without weights

CHECKPOINT = "a file with weights, a folder as a model hub stores it, or hf://org/name[@revision]"


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """End with the message alone: the usage would fill the screen."""
        self.exit(2, f"{worded(message)}. --help lists every option.\n")


class FactsParser(Parser):
    """Of a command that takes --set."""

    def format_help(self) -> str:
        return f"{super().format_help()}\nfacts for --set, with examples or all values:\n{by_hand.text()}\n"


def add_set(parser: argparse.ArgumentParser) -> None:
    help = "override a fact of the checkpoint, or give one that the file does not contain, such as heads=12"
    parser.add_argument("--set", type=assignment, action="append", default=[], metavar="FACT=VALUE", help=help)
    help = "leave out tensors by name, such as 'criterion.*', that do not belong to the network"
    parser.add_argument("--without", action="append", default=[], metavar="NAME", help=help)


def image_size(text: str) -> str:
    """The fact image_size of "N" or "HEIGHTxWIDTH". Raises ValueError."""
    sides = [int(side) for side in text.lower().split("x")]
    if len(sides) > 2 or min(sides) < 1:
        raise ValueError
    return f"{sides[0]},{sides[-1]}"


def layers(text: str) -> tuple[int, ...]:
    """The numbers of "4,8,12", each once. Raises ValueError."""
    return tuple(sorted({int(number) for number in text.split(",")}))


def count(text: str) -> int:
    """Of images; at least two, as of one nothing is certain. Raises ValueError."""
    if (number := int(text)) < 2:
        raise ValueError
    return number


def assignment(text: str) -> tuple[str, str]:
    """The parts of "name=value"."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as heads=12")
    return name, value
