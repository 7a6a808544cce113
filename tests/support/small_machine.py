"""`python -m tests.support.small_machine`: the server in a control group of which only the memory limit is there.

VIT_TEST_CGROUP is its folder.
"""

import os
from pathlib import Path

import app.machine
from app.__main__ import main

if __name__ == "__main__":
    app.machine.CGROUP = Path(os.environ["VIT_TEST_CGROUP"])
    main()
