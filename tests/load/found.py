"""Inputs with which a fuzzer found a fault, kept to be tried again."""

import hashlib
from pathlib import Path

FOLDER = Path(__file__).with_name("found")


def keep(data: bytes) -> None:
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
