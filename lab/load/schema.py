"""`python -m lab.load.schema SECONDS`: run schemathesis on the OpenAPI description of a new server.

Fails when an answer is 5xx or contradicts the description.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.server import running

CHECKS = "not_a_server_error,content_type_conformance,response_schema_conformance"


def main() -> None:
    seconds = sys.argv[1]
    command = [str(Path(sys.executable).with_name("schemathesis")), "run"]
    options = ["--max-time", seconds, "--continue-on-failure", "--suppress-health-check", "all", "--seed", "0"]
    with tempfile.TemporaryDirectory() as folder, running(log_level="error") as server:
        address = f"{server.url}/openapi.json"
        done = subprocess.run([*command, address, *options, "--checks", CHECKS], check=False, cwd=folder)
        survived = server.poll() is None
        tracebacks = server.output().count("Traceback")
    print(f"same process: {survived}; tracebacks: {tracebacks}")
    sys.exit(bool(done.returncode or tracebacks or not survived))


if __name__ == "__main__":
    main()
