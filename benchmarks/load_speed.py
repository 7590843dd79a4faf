"""How fast a large safetensors folder comes into memory: python benchmarks/load_speed.py [GB] [FOLDER].

Makes a folder of a LLaMA shape with random 16-bit weights in four shards below FOLDER (the temporary folder), about GB
large (2.5), and takes turns: the shards read from the disk with plain reads of 8 MB, and the same folder's tensors
brought in as a load on the CPU does it, mapped and touched one by one. The system is asked to drop the files' pages
before each turn; where it does not, both turns are of warm files, and the note says so. Peak memory is that of a
process of its own, above what the interpreter had before and the model itself. At last the whole engine loads the
folder twice: the first time makes the draft's copy, the second finds it in the cache.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import ROOT, Figure, report

ROUNDS = 3
SHARDS = 4
PIECE = 8 << 20
COLD_SHARE = 0.1  # of a file's pages that may be left for it to count as dropped
CODE = """
import json, sys, time
from pathlib import Path
from engine.files.folder import open_folder
from engine.model.weights import HostWeights

def status(field):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024

before = status("VmRSS")
began = time.perf_counter()
folder = open_folder(sys.argv[1])
weights = HostWeights(folder, lambda _: None, lambda: False)
seconds = time.perf_counter() - began
peak = status("VmHWM")
print(json.dumps({"seconds": seconds, "bytes": folder.total_bytes, "above": peak - before - folder.total_bytes}))
"""

ENGINE = """
import sys, time
from engine.engine import Engine
engine = Engine()
began = time.perf_counter()
engine.load(sys.argv[1], device="cpu")
print(time.perf_counter() - began)
engine.close()
"""


def make_folder(folder: Path, nbytes: int) -> Path:
    """A model whose size is about `nbytes`; only its sizes matter, the weights are random bits of small numbers."""
    import numpy as np

    hidden, inner, vocabulary = 2048, 5632, 32000
    layer = 2 * (4 * hidden * hidden + 3 * hidden * inner)
    layers = max(SHARDS, round((nbytes - 4 * vocabulary * hidden) / layer))
    config = {"architectures": ["LlamaForCausalLM"], "hidden_size": hidden, "intermediate_size": inner}
    config |= {"num_hidden_layers": layers, "num_attention_heads": 16, "num_key_value_heads": 16}
    config |= {"vocab_size": vocabulary, "max_position_embeddings": 4096, "torch_dtype": "float16"}
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    from engine.files.checks import expected_tensors
    from engine.files.config import read_config

    tensors = list(expected_tensors(read_config(folder)).items())
    random, weight_map = np.random.default_rng(0), {}
    for shard in range(SHARDS):
        mine = tensors[shard * len(tensors) // SHARDS : (shard + 1) * len(tensors) // SHARDS]
        name = f"model-{shard + 1:05d}-of-{SHARDS:05d}.safetensors"
        header, offset = {}, 0
        for tensor, shape in mine:
            size = 2 * int(np.prod(shape))
            header[tensor] = {"dtype": "F16", "shape": list(shape), "data_offsets": [offset, offset + size]}
            offset += size
            weight_map[tensor] = name
        text = json.dumps(header).encode()
        text += b" " * (-(8 + len(text)) % 64)
        with (folder / name).open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for _, shape in mine:
                bits = random.integers(0, 0x2000, int(np.prod(shape)), np.uint16)
                file.write(bits.tobytes())
            file.flush()
            os.fsync(file.fileno())
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return folder


def dropped(folder: Path) -> bool:
    """Ask the system to put the shards' pages out of memory; whether the first bytes of a probe came from the disk."""
    if not hasattr(os, "posix_fadvise"):
        return False
    for path in folder.glob("*.safetensors"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return _cached_share(folder) < COLD_SHARE


def _cached_share(folder: Path) -> float:
    """Of the shards' pages, the share that is in memory."""
    import ctypes
    import mmap

    libc = ctypes.CDLL(None, use_errno=True)
    pages = held = 0
    for path in folder.glob("*.safetensors"):
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
            count = -(-len(mapped) // mmap.PAGESIZE)
            there = (ctypes.c_ubyte * count)()
            start = (ctypes.c_char * 1).from_buffer(mapped)
            libc.mincore(ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(len(mapped)), there)
            del start
            held += sum(page & 1 for page in there)
            pages += count
    return held / pages


def disk_seconds(folder: Path) -> float:
    """Of reading every shard once, in pieces."""
    buffer = bytearray(PIECE)
    began = time.perf_counter()
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
    return time.perf_counter() - began


def load(folder: Path) -> dict[str, float]:
    """Seconds, bytes, and peak memory above the model, of a process that brings the tensors in."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(folder)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def whole_load(folder: Path) -> float:
    """Seconds that the engine takes to load the folder, without its import."""
    environment = os.environ | {"SPECULAR_DATA_DIR": str(folder.parent / "data")}
    done = subprocess.run(
        [sys.executable, "-c", ENGINE, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return float(done.stdout)


def main() -> None:
    """Make the folder, take turns, print the medians, delete the folder."""
    nbytes = int(float(sys.argv[1] if len(sys.argv) > 1 else 2.5) * 1e9)
    place = Path(tempfile.mkdtemp(prefix="specular-load-", dir=sys.argv[2] if len(sys.argv) > 2 else None))
    try:
        folder = make_folder(place / "model", nbytes)
        largest = max(path.stat().st_size for path in folder.glob("*.safetensors"))
        cold, reads, loads, above = True, [], [], []
        for _ in range(ROUNDS):
            cold &= dropped(folder)
            reads.append(disk_seconds(folder))
            cold &= dropped(folder)
            found = load(folder)
            loads.append(found["seconds"])
            above.append(found["above"])
        first, later = whole_load(folder), whole_load(folder)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    read, loaded = statistics.median(reads), statistics.median(loads)
    state = "files dropped from memory before each turn" if cold else "files warm: the system keeps them in memory"
    note = f"{found['bytes'] / 1e9:.2f} GB in {SHARDS} shards, median of {ROUNDS} turns; {state}"
    report([
        Figure("plain reads of the shards", found["bytes"] / read / 1e9, "GB/s", note=note),
        Figure("tensors brought in, one by one", found["bytes"] / loaded / 1e9, "GB/s", note=note),
        Figure("share of the plain reads' speed", read / loaded, "", at_least=0.8, note=note),
        Figure(
            "peak memory above the model, of the largest shard", max(above) / largest, "", at_most=1.2,
            note=f"largest shard {largest / 1e9:.2f} GB",
        ),
        Figure("whole load, the draft's copy made", first, "s", note="files warm"),
        Figure("whole load, the draft's copy from the cache", later, "s", note="files warm"),
    ])  # fmt: skip


if __name__ == "__main__":
    main()
