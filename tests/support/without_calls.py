"""`python without_calls.py NAMES COMMAND...`: run a command to which system calls are refused, as systemd does it."""

import ctypes
import errno
import os
import sys

ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM

if __name__ == "__main__":
    names, *command = sys.argv[1:]
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(library.seccomp_init(ALLOW))
    for name in names.split(","):
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:
            assert library.seccomp_rule_add(rules, REFUSE, number, 0) == 0
    assert library.seccomp_load(rules) == 0
    os.execvp(command[0], command)
