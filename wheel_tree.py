"""What a wheel has: the packages of this repository under vit_serve/, as others may be called `app` or `model` too.

Imports of one another are rewritten. No other line names a module, as `tests/docker/test_wheel.py` shows.
"""

import ast
import runpy
import shutil
from pathlib import Path

ROOT = Path(__file__).parent
HOME = "vit_serve"
FOLDERS = {HOME: ".", "app": "app", "export": "export", "model": "model", "client/vit_serve_client": "client"}
NAMES = {Path(folder).name: f"{HOME}.{name}" for folder, name in FOLDERS.items() if folder != HOME}
LEFT_OUT = ("__pycache__", "*.so", ".resize-*")


def write_tree(out: Path) -> bool:
    """Fill the folder `out`, which becomes vit_serve/. Whether a C compiler made part of it, for this machine."""
    for folder, name in FOLDERS.items():
        shutil.copytree(ROOT / folder, out / name, ignore=shutil.ignore_patterns(*LEFT_OUT), dirs_exist_ok=True)
    shutil.rmtree(out / "model/demo")  # how the demo was trained
    for file in out.rglob("*.py"):
        file.write_bytes(rewritten(file.read_bytes()))
    runpy.run_path(str(out / "app/images/compiler.py"), run_name="__main__")
    return any((out / "app/images").glob("*.so"))


def rewritten(source: bytes) -> bytes:
    """`from app.errors import X` as `from vit_serve.app.errors import X`, and so on, wherever in the file.

    Raises ValueError for `import app.errors` without `as`, which binds another name then.
    """
    lines = source.splitlines(keepends=True)
    places: list[tuple[int, int]] = []  # of names: line and column
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and _is_ours(node.module):
            places.append((node.lineno - 1, node.col_offset + len("from ")))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if not _is_ours(alias.name):
                    continue
                if not alias.asname:
                    raise ValueError(f"line {node.lineno}: import {alias.name} needs `as`, or `from`")
                places.append((alias.lineno - 1, alias.col_offset))
    for line, column in sorted(places, reverse=True):  # from the end, so that places before stay right
        text = lines[line]
        name = next(name for name in NAMES if text.startswith(name.encode(), column))
        lines[line] = text[:column] + NAMES[name].encode() + text[column + len(name) :]
    return b"".join(lines)


def _is_ours(module: str) -> bool:
    return module.split(".")[0] in NAMES
