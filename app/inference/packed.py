"""Weights in the order in which this machine's processor reads them, packed once and mapped by all.

ONNX Runtime rearranges ("prepacks") the weights for every session, and each session keeps a copy. Here both graphs are
optimised and packed once into a folder of the cache, and every session of every replica on the machine maps its file:

    classify.onnx, explain.onnx    the graphs as ONNX Runtime has optimised them
    weights.bin                    each weight once, plain and packed
    checksums.json                 size and checksum of the others

The folder is named after all that decides what is in it: the bundle, ONNX Runtime and the processor. It gets this name
when it is complete, so none is half-written. Of replicas that start at once, one names it and all use it. It is not
changed afterwards. What nobody has used for a month is removed when another is made.

The checksums find damage. Nothing would help against somebody who can write here, and so can write checksums too; so
they are CRC-32, which takes a third of the time of SHA-256, in a start that waits for it.
"""

import hashlib
import json
import logging
import os
import platform
import re
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from app.bundle import CLASSIFY_GRAPH, EXPLAIN_GRAPH, WEIGHTS, Bundle, mapped
from app.inference.external_data import merge
from app.machine import processor

log = logging.getLogger(__name__)

FORMAT = 1
GRAPHS = (CLASSIFY_GRAPH, EXPLAIN_GRAPH)
CHECKSUMS = "checksums.json"
MAKING = ".packing-"  # begins the name of a folder that is not complete
OURS = re.compile(rf"[0-9a-f]{{32}}|{re.escape(MAKING)}.*")
UNUSED_S = 30 * 24 * 3600.0


def cache_folder(setting: str) -> Path | None:
    """The folder that VIT_CACHE names; None for `off`, and where this user has no home."""
    if setting == "off":
        return None
    if setting != "auto":
        return Path(setting)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vit-serve"
    except RuntimeError:
        return None


class DamagedWeights(Exception):
    """What was packed is not what lies there now."""


class PackedWeights:
    """One bundle's folder in the cache."""

    def __init__(self, *, cache: Path, bundle: Bundle, runtime: str) -> None:
        """`runtime` is the name and version of what packs and reads the weights."""
        decides = [FORMAT, bundle.digest, runtime, platform.machine(), processor()]
        self.folder = cache / hashlib.sha256(json.dumps(decides).encode()).hexdigest()[:32]
        self._cache = cache
        self._bundle = bundle

    def find(self, pack: Callable[[Path, Path], None]) -> bool:
        """Whether there is such a folder. Where there is none it is made, with `pack(graph, packed_graph)`: it writes
        an optimised graph, and its weights beside it. The log says why one cannot be made.
        """
        try:
            if not (self.folder / CHECKSUMS).is_file():
                self._make(pack)
            with suppress(OSError):  # of a file system that can only be read
                os.utime(self.folder)
        except Exception as error:  # those of ONNX Runtime have no common base
            log.info("the weights are not packed: %s", error)
            return False
        return True

    def check(self) -> None:
        """Read every byte. Raises DamagedWeights."""
        for name, (_, expected) in self._checksums().items():
            if checksum(self.folder / name) != expected:
                raise DamagedWeights(f"{name} was altered")

    def check_graphs(self) -> None:
        """What has to be so before the graphs are opened: to map more than there is would end the process.

        Raises DamagedWeights.
        """
        for name, (size, expected) in self._checksums().items():
            file = self.folder / name
            if file.stat().st_size != size or (name in GRAPHS and checksum(file) != expected):
                raise DamagedWeights(f"{name} was altered")

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _checksums(self) -> dict[str, tuple[int, int]]:
        try:
            listed = json.loads((self.folder / CHECKSUMS).read_bytes())
            return {name: (int(listed[name][0]), int(listed[name][1])) for name in (*GRAPHS, WEIGHTS)}
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise DamagedWeights(f"{CHECKSUMS} was altered") from error

    def _make(self, pack: Callable[[Path, Path], None]) -> None:
        self._cache.mkdir(parents=True, exist_ok=True)
        self._remove_unused()
        with tempfile.TemporaryDirectory(prefix=MAKING, dir=self._cache, ignore_cleanup_errors=True) as making:
            log.info("packing the weights into %s, once for this bundle and processor", self.folder)
            self._bundle.check_files()
            made, optimised = Path(making) / "made", Path(making) / "optimised"
            for folder in (made, optimised):
                folder.mkdir()
            for name in GRAPHS:
                pack(self._bundle.folder / name, optimised / name)
            merge(optimised, made, graphs=GRAPHS, weights=WEIGHTS)
            listed = {file.name: (file.stat().st_size, checksum(file)) for file in made.iterdir()}
            (made / CHECKSUMS).write_text(json.dumps(listed, indent=1))
            try:
                made.rename(self.folder)
            except OSError:
                if not (self.folder / CHECKSUMS).is_file():  # else another replica was faster
                    self.remove()
                    made.rename(self.folder)

    def _remove_unused(self) -> None:
        for folder in self._cache.iterdir():
            with suppress(OSError):
                if OURS.fullmatch(folder.name) and folder.stat().st_mtime < time.time() - UNUSED_S:
                    shutil.rmtree(folder, ignore_errors=True)


def checksum(file: Path) -> int:
    """CRC-32."""
    with mapped(file) as data:
        return zlib.crc32(data)
