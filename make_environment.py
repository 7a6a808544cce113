"""The environment that make installs into: made if its folder is given, and else the one of the Python that runs this.

The Makefile runs it before pip, perhaps by an old Python or in an environment of another program, so it has the
standard library alone. It ends with one sentence if nothing can be installed there.
"""

import subprocess
import sys
import venv
from pathlib import Path

LEAST, MOST = (3, 11), (3, 14)
PIP = "pip>=25.1"  # the first that knows groups


def main(folders: "list[str]") -> None:
    here = sys.version_info[:2]
    if not LEAST <= here <= MOST:
        who = "this is" if folders else f"{sys.prefix} has"
        then = "give another, such as" if folders else "remove that folder, or give VENV=another and"
        sys.exit(f"{who} Python {here[0]}.{here[1]}, and 3.11 to 3.14 is needed: {then} PYTHON=python3.12")
    for folder in folders:  # what is left of one whose Python is gone would pass for installed
        venv.create(folder, clear=Path(folder, "pyvenv.cfg").exists(), symlinks=True, with_pip=True)
    if not folders:
        _bring_pip()


def _bring_pip() -> None:
    pip = [sys.executable, "-m", "pip"]
    known = subprocess.run([*pip, "--version"], capture_output=True)
    brought = [sys.executable, "-m", "ensurepip"]  # where uv made the environment
    if known.returncode and subprocess.run(brought, stdout=subprocess.DEVNULL).returncode:
        sys.exit(f"{sys.prefix} has no pip, and its Python brings none: remove it")
    if subprocess.run([*pip, "install", "--quiet", PIP]).returncode:
        sys.exit(f"pip of {sys.prefix} does not work, or finds no index of packages")


if __name__ == "__main__":
    main(sys.argv[1:])
