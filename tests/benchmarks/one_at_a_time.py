"""`python -m tests.benchmarks.one_at_a_time`: the service with one model run at a time."""

from app.__main__ import main
from app.inference.cpu import OnnxEngine

if __name__ == "__main__":
    OnnxEngine.concurrency = 1
    main()
