"""Where a command reads and writes: what is wrong there can be said before anything is computed. Without torch."""

import os
from pathlib import Path

MANIFEST = "manifest.json"  # app/bundle.py has it too, and takes most of a second to import
SUFFIX, REPORT = ".safetensors", ".report"


def check_bundle_place(out: Path, *, replace: bool) -> None:
    """Raises ValueError or OSError unless `out` is free, or may be replaced: never a person's own files."""
    if not out.name:  # . and /, which nothing can take the place of
        raise ValueError(f"--out {out}: give the name of a folder to write, such as bundles/NAME")
    _check_parent(out)
    if not out.exists():
        return
    if not (out / MANIFEST).is_file() and not (out.is_dir() and not any(out.iterdir())):
        raise FileExistsError(f"{out} exists and is not a bundle, so it stays as it is: give another --out")
    if not replace:
        raise FileExistsError(f"{out} exists; --replace replaces it")


def check_file_place(out: Path, images: Path, *, replace: bool) -> None:
    """Raises ValueError or OSError unless a checkpoint and its report can be written at `out`."""
    if out.suffix != SUFFIX:
        raise ValueError(f"--out {out}: the name must end in {SUFFIX}")
    if images.is_dir() and out.resolve().is_relative_to(images.resolve()):
        raise ValueError(f"--out {out}: it lies among the images; its report would become a label")
    _check_parent(out)
    if out.is_dir():
        raise IsADirectoryError(f"--out {out}: this is a folder")
    report = out.with_suffix(REPORT)
    if images.resolve().is_relative_to(report.resolve()):
        raise ValueError(f"--images {images}: it lies in {report}, which this run replaces: give another --out")
    for place in (out, report):
        if place.exists() and not replace:
            raise FileExistsError(f"{place} exists; --replace replaces it")


def check_labelled_images(images: Path) -> None:
    """Raises ValueError unless `images` is a folder or a CSV."""
    if not images.is_dir() and not (images.suffix.lower() == ".csv" and images.is_file()):
        what = "is neither a folder nor a CSV file" if images.exists() else "does not exist"
        raise ValueError(f"--images {images}: this {what}")


def check_folder(folder: Path, option: str) -> None:
    """Raises ValueError unless `folder`, the value of `option`, is one."""
    if not folder.is_dir():
        raise ValueError(f"{option} {folder}: this {'is not a folder' if folder.exists() else 'does not exist'}")


def check_bundle(folder: Path) -> None:
    """Raises ValueError or OSError unless `folder` is a bundle, into which and beside which files can be written."""
    if not (folder / MANIFEST).is_file():
        raise ValueError(f"{folder} {'is not a bundle' if folder.exists() else 'does not exist'}: give its folder")
    for place in (folder, folder.resolve().parent):
        if not os.access(place, os.W_OK | os.X_OK):
            raise PermissionError(f"{place} may not be written to")


def _check_parent(out: Path) -> None:
    """Raises OSError unless the folders above `out` are there or can be made."""
    parent = next(folder for folder in out.parents if folder.exists())
    if not parent.is_dir():
        raise NotADirectoryError(f"{parent} is not a folder, so {out} cannot be in it: give another --out")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise PermissionError(f"{parent} may not be written to: give another --out")
