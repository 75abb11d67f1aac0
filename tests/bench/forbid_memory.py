"""Usage: forbid_memory.py create|fill COMMAND…: runs it where memory to be shared cannot be made, as some containers have
it, or is made but has nothing in it, as where the system promises no more than it has (vm.overcommit_memory = 2).

A system call filter refuses memfd_create or fallocate; no privilege is needed. Exits with 77 where there are no filters.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

CALLS = {
    "create": ({"x86_64": 319, "aarch64": 279, "ppc64le": 360}, errno.EPERM),
    "fill": ({"x86_64": 285, "aarch64": 47, "ppc64le": 309}, errno.ENOSPC),
}
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER = 22, 38, 2
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # of linux/bpf_common.h, on words
ALLOW, REFUSE = 0x7FFF0000, 0x00050000  # the latter with an errno added
SKIPPED = 77


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def refuse(number, error):
    instructions = b"".join(
        struct.pack("HBBI", *instruction)
        for instruction in ((LOAD, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE + error), (RETURN, 0, 0, ALLOW))
    )
    program = Program(len(instructions) // 8, instructions)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0):
        print(f"system calls cannot be refused: {os.strerror(ctypes.get_errno())}", file=sys.stderr)
        sys.exit(SKIPPED)


numbers, answer = CALLS[sys.argv[1]]
if platform.machine() not in numbers:
    print(f"the number of the system call on {platform.machine()} is not known", file=sys.stderr)
    sys.exit(SKIPPED)
refuse(numbers[platform.machine()], answer)
os.execv(sys.argv[2], sys.argv[2:])
