"""`python -m lab.benchmarks.age`: which tables are older than the code they measure. `make check` prints it.

It is a hint to measure again, not a fault. Tables of accuracy are left out: a request's path does not change them.
"""

from lab.benchmarks.record import git, read_record, record_paths

# What a request runs through, and the graphs.
HOT_PATH = (
    *("app/classifier.py", "app/http", "app/api", "app/images", "app/inference", "app/maps/record.py", "app/stores"),
    ":(glob)export/*.py",
)
MEASURED = ("batch", "benchmarks", "load")  # folders of lab/ with speed and memory
ACCURACY = ("chance", "learning", "maps", "what_if")  # records there of something else
SHOWN = 5


if __name__ == "__main__":
    paths = {name: path for name, path in record_paths().items() if path.parent.name in MEASURED}
    changes = {}
    for name in paths.keys() - set(ACCURACY):
        since = f"{read_record(paths[name]).head['commit']}..HEAD"  # nothing in a clone without the commit
        changes[name] = len(git("log", "--format=%h", since, "--", *HOT_PATH).splitlines())
    older = sorted(filter(changes.get, changes), key=lambda name: (-changes[name], name))
    print(f"{len(older)} of {len(changes)} tables are older than the code that they measure", end="")
    print("; the oldest, with changes since:" if older else "")
    for name in older[:SHOWN]:
        print(f"  {name}, {str(read_record(paths[name]).head['date'])[:10]}: {changes[name]}")
