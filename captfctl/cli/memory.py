"""How a process that lives long gives memory back."""

import ctypes

_M_MMAP_THRESHOLD = -3
_LARGE = 256 * 1024


def give_back_large_blocks() -> None:
    """Have the C library take each large block from the kernel, and return it once it is freed.

    By itself glibc stops doing so with the first large block that is freed. States and answers with
    them then come from the heaps of dozens of threads, whose gaps it keeps: with states of 7 MB
    half of a control plane's memory. Other C libraries return large blocks anyway.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE)
