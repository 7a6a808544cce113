"""app/__main__.py: signals while the service starts."""

import signal
import subprocess
import sys

import pytest

from app.settings import VERSION
from tests.support.processes import PATIENCE_S

# The signal goes to the thread that is waited for, so that it interrupts nothing in the main thread.
INTERRUPTED = """
import signal, threading, time
from app.__main__ import exit_at_signals

def interrupt():
    time.sleep(0.3)  # by then the main thread waits
    signal.pthread_kill(threading.get_ident(), {number})
    threading.Event().wait()

with exit_at_signals():
    thread = threading.Thread(target=interrupt)
    thread.start()
    thread.join()
"""
MADE = """
import os, subprocess, sys
program = "import time; from app.__main__ import *; end_with_parent(); print('set', flush=True); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
os.kill(os.getpid(), 9)
"""
THROUGH = """
import signal, threading
from app.__main__ import exit_at_signals

with exit_at_signals():
    pass
assert threading.active_count() == 1
assert signal.set_wakeup_fd(-1) == -1
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_process_whose_main_thread_waits_for_ever(number):
    done = run(INTERRUPTED.format(number=int(number)))
    assert (done.returncode, done.stderr) == (0, "")


def test_no_import_that_takes_long_comes_before_it():
    """Until then a signal ends the process with a traceback, and as number 1 of a container it does not see SIGTERM."""
    done = run("import sys, app.__main__; print([name for name in sys.modules if name.startswith('app')])")
    assert done.stdout == "['app', 'app.__main__']\n"


def test_nothing_of_it_is_left_behind():
    done = run(THROUGH)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")
def test_it_ends_when_make_is_killed():
    """`run` returns when no process has the output open; the child would for a minute."""
    done = run(MADE)
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.strip().isdecimal()


@pytest.mark.parametrize(
    ("argument", "status", "out", "error"),
    [
        ("--help", 0, "usage: ", ""),
        ("--version", 0, f"vit-serve {VERSION}\n", ""),
        ("--port=1", 2, "", "cannot start: --port is not an argument"),
    ],
)
def test_arguments_are_answered_without_the_service(argument, status, out, error):
    program = f"""
import sys
sys.argv[1:] = ["{argument}"]
for name in ("numpy", "PIL", "fastapi", "uvicorn", "onnxruntime"): sys.modules[name] = None
from app.__main__ import main
main()
"""
    done = run(program)
    assert done.returncode == status
    assert (done.stdout[: len(out)], done.stderr[: len(error)]) == (out, error)
    assert done.stdout == "" or done.stderr == ""
