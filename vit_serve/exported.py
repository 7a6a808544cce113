"""A checkpoint as a bundle: exported the first time, and kept in the cache of this user."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from shlex import quote

from app.settings import VERSION
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.files import weights_files
from vit_serve.extra import check_export

HUB = "hf://"
MANIFEST = "manifest.json"


def bundle_of(model: str) -> Path:
    """The folder of the bundle `model`, or of the one that is exported from the checkpoint `model`.

    A file or folder that was changed is exported again, and so is every checkpoint by another version; the bundle of
    before is removed. What lies on the hub is not: hf://org/name@REVISION names another state of it. Exits with 1 if
    there is nothing to export, and as the export does if it fails.
    """
    if (Path(model) / MANIFEST).is_file():
        return Path(model)
    address, state, name = _checkpoint(model)
    states = _cache() / _digest(address)
    place = states / _digest(VERSION, *state) / (name or "model")
    if not (place / MANIFEST).is_file():
        check_export()
        print(f"exporting {model} into {place.parent}, once", flush=True)  # noqa: T201
        _export(model, place)
        for older in {*states.iterdir()} - {place.parent}:
            shutil.rmtree(older, ignore_errors=True)  # another process may do so too
    return place


def _export(model: str, place: Path) -> None:
    """In a process of its own, as PyTorch would stay in the memory of this one."""
    paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-P", "-m", __package__, "export", "--checkpoint", model, "--out", str(place)]
    try:
        status = subprocess.run(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}).returncode
    except KeyboardInterrupt:  # which the export has got too, and has told
        sys.exit(130)
    if status and not (place / MANIFEST).is_file():  # another process may have been faster
        if Path(model).exists():
            with_options = f"vit-serve export --checkpoint {quote(model)} --out FOLDER"
            print(f"Options go to `{with_options}`. Then serve FOLDER.", file=sys.stderr)  # noqa: T201
        sys.exit(status)


def _checkpoint(model: str) -> tuple[str, list[str], str]:
    """Where it lies, on this machine its files with their sizes and times, and its name."""
    if model.startswith(HUB):
        return model, [], Path(model.removeprefix(HUB)).name.partition("@")[0]
    path = Path(model)
    try:
        weights_files(path)
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        stats = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.is_file()]
    except (CheckpointError, OSError) as error:
        sys.exit(f"not served: {error}")
    return str(path.resolve()), [*map(repr, stats)], path.resolve().stem


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vit-serve"
