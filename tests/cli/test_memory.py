"""Memory of processes that live long."""

import json
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, json, sys
from captfctl.cli.memory import give_back_large_blocks

class Facts(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Facts
if sys.argv[1] == "set":
    give_back_large_blocks()
large = bytes(20 << 20)
del large
before = libc.mallinfo2().hblkhd
states = [bytes(1 << 20) for _ in range(4)]
held = libc.mallinfo2().hblkhd
del states
print(json.dumps([held - before, libc.mallinfo2().hblkhd - before]))
"""


def of_the_kernel(mode: str) -> list[int]:
    """Bytes taken from the kernel for four blocks of 1 MiB, and after they were freed."""
    command = [sys.executable, "-c", PROGRAM, mode]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's own habit")
def test_large_blocks_go_back_to_the_kernel_also_after_a_larger_one_was_freed():
    held, left = of_the_kernel("set")
    assert held >= 4 << 20
    assert left == 0
    assert of_the_kernel("unset")[0] == 0
