"""Random changes of bytes, and the folder of those with which a fault was found, to be tried again."""

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path

FOUND = Path(__file__).with_name("found")


def changed(data: bytes, chance: random.Random, *, tokens: Sequence[bytes], head: int) -> bytes:
    """`data` with one to eight changes, most of them in its first `head` bytes. `tokens` mean something there."""
    out = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        end = len(out) if chance.random() < 0.2 else min(len(out), head)
        at = chance.randrange(end + 1)
        to = min(len(out), at + chance.choice((1, 2, 10, 100, 1000)))
        token = chance.choice(tokens)
        match chance.randrange(6):
            case 0:
                out[at : at + 1] = bytes(byte ^ 1 << chance.randrange(8) for byte in out[at : at + 1])
            case 1:
                del out[at:to]
            case 2:
                out[at:at] = out[at:to] * chance.choice((1, 2, 50))
            case 3:
                out[at:at] = token
            case 4:
                out[at : at + len(token)] = token
            case _:
                out[at:to] = chance.randbytes(to - at)
    return bytes(out)


def keep(data: bytes) -> None:
    FOUND.mkdir(exist_ok=True)
    (FOUND / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
