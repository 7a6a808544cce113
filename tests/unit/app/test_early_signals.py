"""app/__main__.py: signals while the service starts."""

import signal
import subprocess
import sys

import pytest

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
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=20, check=False
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
