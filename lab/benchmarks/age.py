"""`python -m lab.benchmarks.age`: which tables are older than the code they measure. `make check` prints it.

It is a hint to measure again, not a fault.
"""

from lab.benchmarks.record import git, read_record, record_paths

# What a request runs through, and the graphs.
HOT_PATH = (
    *("app/classifier.py", "app/door", "app/api", "app/images", "app/inference", "app/maps/record.py", "app/stores"),
    ":(glob)export/*.py",
)


if __name__ == "__main__":
    older = []
    for name, path in record_paths().items():
        since = f"{read_record(path).head['commit']}..HEAD"
        changes = git("log", "--format=%h", since, "--", *HOT_PATH).splitlines()  # none in a clone without the commit
        if changes and path.parent.name != "study":
            older.append(f"{name} ({len(changes)})")
    print(f"Tables older than the code (changes since): {', '.join(older) or 'none'}")
