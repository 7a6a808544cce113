"""`python -m tests.benchmarks.age`: which tables are older than the code they measure. `make check` prints it.

It is a hint to measure again, not a fault.
"""

from tests.benchmarks.record import git, read_record, record_paths

# What a request runs through, and the graphs.
HOT_PATH = (
    *("app/classifier.py", "app/door", "app/api", "app/images", "app/inference", "app/maps/record.py", "app/stores"),
    *("export/graphs.py", "export/rewrite.py", "export/evidence.py", "export/onnx_file.py", "export/precision.py"),
)


def changes_since(commit: str) -> int:
    """Commits to the hot path since this one; 0 without git, or in a clone without the commit."""
    return len(git("log", "--format=%h", f"{commit}..HEAD", "--", *HOT_PATH).splitlines())


if __name__ == "__main__":
    tables = {name: path for name, path in record_paths().items() if path.parent.name != "study"}
    counts = {name: changes_since(str(read_record(path).head["commit"])) for name, path in tables.items()}
    older = ", ".join(f"{name} ({count})" for name, count in counts.items() if count)
    print(f"Tables older than the code (changes since): {older or 'none'}")
