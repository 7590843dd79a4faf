"""The CPU path: kernels compiled by numba on first use, no compiler needed on the user's machine.

The compiled code is kept on disk in a folder named after these sources and the compiler's version, because numba
itself notices a change only in the file of the outermost function.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numba

from engine.files.paths import kernel_cache_dir


def _use_cache() -> None:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    text = b"".join(source.read_bytes() for source in sources) + numba.__version__.encode()
    numba.config.CACHE_DIR = str(kernel_cache_dir() / hashlib.sha256(text).hexdigest()[:16])


_use_cache()
