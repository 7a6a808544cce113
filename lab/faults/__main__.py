"""`python -m lab.faults [name ...]`: which of the seeded faults the tests find.

One fault at a time is put into a copy of the working tree. Tests that name its file run first, and all others if those
find nothing. A test that has failed has to pass without the fault.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tqdm import tqdm

from lab.faults.catalogue import FAULTS, Fault

ROOT = Path(__file__).parents[2]
KINDS = ("unit", "golden", "integration")  # the cheapest first; browsers and containers after them
# Where tests of files are that no test imports by this path:
HOMES = {"app/page": "tests/browser", "client": "tests/unit/client", "docker": "tests/docker"}
TEST_S = 120  # of one test, its fixtures included: a test that hangs has found the fault
RUN_S = 1800


def main() -> None:
    names = sys.argv[1:] or [*FAULTS]
    if unknown := set(names) - FAULTS.keys():
        raise SystemExit(f"there is no fault called {', '.join(unknown)}: lab/faults/catalogue.py lists them")
    missed = []
    with copy_of_tree() as tree, tqdm(names, unit="fault") as bar:
        for name in bar:
            bar.set_postfix_str(name)
            start = time.monotonic()
            test = seek(FAULTS[name], tree)
            missed += [name] if test is None else []
            bar.write(f"{name:20}{time.monotonic() - start:5.0f} s  {test or 'NOT FOUND'}")
    print(f"{len(names) - len(missed)} of {len(names)} faults found")
    sys.exit(bool(missed))


@contextmanager
def copy_of_tree() -> Iterator[Path]:
    """A worktree of its own with everything that git does not ignore: some tests read the history."""
    with tempfile.TemporaryDirectory(prefix="faults-") as temporary:
        tree = Path(temporary) / "tree"
        _git("worktree", "add", "--detach", "--quiet", str(tree))
        try:
            for name in _git("ls-files", "-z", "--modified", "--others", "--exclude-standard").split("\0")[:-1]:
                if (ROOT / name).is_file():
                    (tree / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(ROOT / name, tree / name)
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def seek(fault: Fault, tree: Path) -> str | None:
    """The test that finds the fault. Raises RuntimeError if it fails without the fault too."""
    file = tree / fault.file
    text = file.read_text()
    try:
        file.write_text(seeded(fault, text))
        test = next(filter(None, (failing(tests, tree) for tests in tests_for(fault, tree))), None)
    finally:
        file.write_text(text)
    if test and failing([test], tree):
        raise RuntimeError(f"{test} fails without a fault")
    return test


def seeded(fault: Fault, text: str) -> str:
    """The text of the file with the fault. Raises ValueError unless its place is there once."""
    if (count := text.count(fault.before)) != 1:
        raise ValueError(f"{fault.file} has {count} times what the fault replaces: {fault.before!r}")
    return text.replace(fault.before, fault.after)


def tests_for(fault: Fault, tree: Path) -> list[list[str]]:
    """The test files that are named like the fault's module, then those that name it or lie where its tests do, and all
    others; of each the cheapest kind first.
    """
    module = Path(fault.file).with_suffix("")
    name = re.compile(rf"\b{'.'.join(module.parts)}\b|from {'.'.join(module.parts[:-1])} import .*\b{module.name}\b")

    home = next((home for folder, home in HOMES.items() if module.is_relative_to(folder)), "tests/unit/nowhere")

    def cost(test: Path) -> int:
        kind = test.relative_to(tree / "tests").parts[0]
        return KINDS.index(kind) if kind in KINDS else len(KINDS)

    alike: list[str] = []
    near: list[str] = []
    others: list[str] = []
    for test in sorted(sorted(tree.glob("tests/**/test_*.py")), key=cost):
        if test.name != "test_faults.py":  # which fails with every fault
            path = test.relative_to(tree)
            named = test.name.startswith(f"test_{module.name}")
            where = alike if named else near if path.is_relative_to(home) or name.search(test.read_text()) else others
            where.append(str(path))
    return [alike + near, others]


def failing(tests: Sequence[str], tree: Path) -> str | None:
    """The first test that fails or hangs; None if there is none within RUN_S. Raises RuntimeError if pytest breaks."""
    if not tests:
        return None
    options = ["-x", "-v", "-rfE", "--tb=no", "-p", "no:cacheprovider", f"--timeout={TEST_S}"]
    command = [sys.executable, "-m", "pytest", *options, f"--basetemp={tree.parent / 'tests'}", *tests]
    pipe, merged = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(command, cwd=tree, stdout=pipe, stderr=merged, text=True, start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=RUN_S)
        except subprocess.TimeoutExpired:
            return None
        finally:  # what tests have started too
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return None
    if failed := re.search(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", output, re.MULTILINE):
        return failed[1]
    if "+ Timeout +" in output:  # and pytest-timeout has ended pytest
        begun: list[str] = re.findall(r"^(tests/\S+\.py::.*?) *(?:\+\+\+.*)?$", output, re.MULTILINE)
        return begun[-1]
    raise RuntimeError(f"pytest ended with {process.returncode}: {output[-2000:]}")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
