"""A bundle: a folder with the ONNX graphs, their weights and the manifest."""

import hashlib
import mmap
import os
from codecs import BOM_UTF8
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from weakref import finalize

from pydantic import ValidationError

from app.bundle.manifest import WEIGHTS, Manifest
from app.errors import CannotStart
from app.settings import variable

MANIFEST = "manifest.json"
CHECKPOINTS = {".safetensors", ".bin", ".pt", ".pth", ".npz"}  # file names of libraries


class BundleError(CannotStart):
    """The folder is not a bundle that this service can serve; the message says why."""


@dataclass(kw_only=True, eq=False)
class Bundle:
    """A folder with a valid manifest."""

    folder: Path
    manifest: Manifest
    digest: str  # sha256 of the manifest, and through its checksums of everything

    def __post_init__(self) -> None:
        self._weights = -1  # kept open: its name may lead to another file later
        self._checked: tuple[int, ...] = ()

    def check_files(self) -> None:
        """Raises BundleError when a file is missing or altered. Reads every byte."""
        with suppress(OSError):
            self._weights = os.open(self.folder / WEIGHTS, os.O_RDONLY)
            finalize(self, os.close, self._weights)
            self._checked = self._state()
        for name, expected in self.manifest.files.items():
            file = self.folder / name
            exists = os.path.isfile(file)  # noqa: PTH113 (False too for what cannot be a name, and links in a circle)
            if not exists or not file.resolve().is_relative_to(self.folder.resolve()):
                raise BundleError(f"{self.folder} lacks {name!r}, which its manifest lists")
            if sha256(file) != expected:
                raise BundleError(f"{file} does not have the checksum that the manifest states: it was altered")

    def weights_changed(self) -> bool:
        """Whether the weights that were checked have been written to since. The model reads them from the file as it
        runs. Another file under the same name, as `mv` and the exporter put it there, does not count.
        Raises OSError.
        """
        if self._weights < 0 or (state := self._state()) == self._checked:
            return False
        # Links and permissions change the last number too, and so does a write that puts the time of the file back.
        if state[:-1] != self._checked[:-1] or self._checksum() != self.manifest.files[WEIGHTS]:
            return True
        self._checked = state
        return False

    def _state(self) -> tuple[int, ...]:
        state = os.fstat(self._weights)
        return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns

    def _checksum(self) -> str:
        """The SHA-256 of the weights, read without mapping them: the file may be cut off meanwhile."""
        with open(self._weights, "rb", closefd=False) as file:
            file.seek(0)
            return hashlib.file_digest(file, "sha256").hexdigest()


def load_bundle(folder: Path) -> Bundle:
    """Read and check a manifest. Raises BundleError when it is missing or unknown."""
    path = folder / MANIFEST
    if not path.is_file():
        raise _no_bundle(folder)
    text = path.read_bytes()
    try:
        manifest = Manifest.model_validate_json(text.removeprefix(BOM_UTF8))  # of editors on Windows
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'manifest'}: {e['msg']}" for e in error.errors()[:5])
        wrong = wrong.encode("unicode_escape").decode()  # names may have what a terminal obeys
        raise BundleError(f"{path} is not a manifest of format 4 ({wrong}). Export the model again.") from None
    return Bundle(folder=folder, manifest=manifest, digest=hashlib.sha256(text).hexdigest())


def _no_bundle(path: Path) -> BundleError:
    """Says which mistake it is: a wrong path, a checkpoint, or a folder of something else."""
    if not path.exists():
        return BundleError(f"{path} does not exist ({variable('bundle')})")
    if path.is_file() or any(file.suffix in CHECKPOINTS for file in path.iterdir()):
        command = f"make export CHECKPOINT={quote(str(path))} OUT={quote(f'bundles/{path.resolve().stem}')}"
        return BundleError(f"{path} looks like a checkpoint, not a bundle. Make a bundle of it: {command}")
    return BundleError(f"{path} is not a bundle: it has no {MANIFEST}. `make export` makes one of a checkpoint")


def sha256(file: Path) -> str:
    """The SHA-256 of a file, in one call: unlike many calls, it needs the interpreter only once, while other threads
    start the service.
    """
    with file.open("rb") as opened:
        if not os.fstat(opened.fileno()).st_size:  # nothing can be mapped
            return hashlib.sha256().hexdigest()
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return hashlib.sha256(data).hexdigest()
