"""docker/vit-serve.service: systemd takes it, and the service runs under its filter of system calls."""

import re
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import httpx

from app.server import EXIT_CANNOT_START
from app.settings import Settings
from tests.support.server import running

UNIT = Path("docker/vit-serve.service")
EXPOSURE = 20  # of 100, as `systemd-analyze security` counts


def test_systemd_takes_it_and_calls_it_safe(need, tmp_path):
    copy = tmp_path / UNIT.name
    copy.write_text(re.sub(r"(?m)^ExecStart=\S+", f"ExecStart={sys.executable}", UNIT.read_text()))
    verify = [need("systemd-analyze"), "verify", copy]
    done = subprocess.run(verify, capture_output=True, text=True)
    assert (done.returncode, [line for line in done.stderr.splitlines() if UNIT.name in line]) == (0, [])
    security = [need("systemd-analyze"), "security", "--offline=true", f"--threshold={EXPOSURE}", copy]
    assert subprocess.run(security, stdout=subprocess.DEVNULL).returncode == 0


def test_it_gives_time_to_drain_and_does_not_repeat_what_cannot_start():
    parser = ConfigParser(strict=False, interpolation=None)
    parser.read_string(UNIT.read_text())
    service, settings = parser["Service"], Settings()
    assert float(service["TimeoutStopSec"]) > settings.drain_delay_s + settings.drain_timeout_s + 5
    assert service["RestartPreventExitStatus"].split() == ["2", str(EXIT_CANNOT_START)]


def test_it_serves_under_the_filter(need, star):
    listed = [need("systemd-analyze"), "syscall-filter", "@privileged", "@resources"]
    text = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^ +([a-z]\w*)$", text, re.MULTILINE)
    assert {"setpriority", "sched_setaffinity", "mbind", "setuid"} <= {*names}
    with running(
        inside=lambda command: [sys.executable, "tests/support/without_calls.py", ",".join(names), *command]
    ) as server:
        (result,) = httpx.post(f"{server.url}/classify", content=star, timeout=60).json()["results"]
        assert result["predictions"][0]["label"] == "star"
        assert httpx.get(f"{server.url}{result['attention']}", timeout=60).status_code == 200
        assert "Traceback" not in server.output()
