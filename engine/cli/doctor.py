"""`specular-cli doctor`: what this computer gives the engine, shown by a short reply, and what of it comes back."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import time
from dataclasses import asdict, dataclass

from engine.cli.session import EngineLike, load, reply_to
from engine.memory.report import KvMemory
from engine.records import ModelInfo, StopReason
from engine.settings import GenerateRequest, Message

QUESTION = "Name three rivers."
REPLY_TOKENS = 48
GIVEN_BACK_WITHIN = 2.0  # seconds after the chat is closed
PACKAGES = ("torch", "triton", "numba", "PySide6-Essentials", "cuda-bindings")


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found. memory: after the reply, with its chat still open. held: bytes `seconds` after it was closed."""

    versions: dict[str, str | None]
    info: ModelInfo
    load_seconds: float
    tokens: int
    tokens_per_second: float | None
    failure: str | None
    memory: KvMemory
    held: int
    seconds: float

    @property
    def healthy(self) -> bool:
        """Whether the model answered, and a closed chat's memory came back where it can."""
        return self.failure is None and (self.memory.page_bytes == 0 or self.held == 0)


def doctor(engine: EngineLike, options: argparse.Namespace) -> int:
    """Load, answer, look; returns the exit status: 1 where something is wrong. Raises SpecularError as loading does."""
    findings = examine(engine, options)
    print(json.dumps(asdict(findings), default=str) if options.json else "\n".join(lines(findings)))
    return 0 if findings.healthy else 1


def examine(engine: EngineLike, options: argparse.Namespace) -> Findings:
    """Make a reply, close its chat, and see what the KV cache takes before and after."""
    info, load_seconds = load(engine, options)
    reads_text = info.template != "none"
    request = GenerateRequest(
        messages=(Message("user", QUESTION),) if reads_text else (),
        prompt_ids=None if reads_text else (1, 2, 3),
        max_new_tokens=REPLY_TOKENS,
    )
    reply = reply_to(engine, request, lambda _: None)
    memory = engine.memory()
    assert memory is not None and reply.finished is not None
    failed = reply.finished.reason is StopReason.FAILED
    engine.forget()
    began = time.monotonic()
    while (held := _held(engine)) and time.monotonic() - began < GIVEN_BACK_WITHIN:
        time.sleep(0.05)
    return Findings(
        versions={name: _version(name) for name in PACKAGES},
        info=info,
        load_seconds=load_seconds,
        tokens=len(reply.token_ids),
        tokens_per_second=reply.statistics.tokens_per_second,
        failure=(reply.finished.message or "The reply failed.") if failed else None,
        memory=memory,
        held=held,
        seconds=time.monotonic() - began,
    )


def lines(found: Findings) -> list[str]:
    """The findings for people, one thing a line."""
    info, speed = found.info, found.tokens_per_second
    versions = ", ".join(f"{name} {version or 'missing'}" for name, version in found.versions.items())
    made = f"{found.tokens} tokens" + (f" at {speed:.1f} tok/s" if speed else "")
    return [
        f"system      {platform.system()} {platform.machine()}, Python {platform.python_version()}",
        f"packages    {versions}",
        f"device      {info.device}, {info.kernels}",
        f"model       {info.name}, {info.weights_dtype}, {_mb(info.weights_bytes)} and {_mb(info.draft_bytes)} of the "
        f"draft, context {info.context:,}, loaded in {found.load_seconds:.1f} s",
        *(f"note        {note}" for note in info.notes),
        f"reply       {found.failure or made}",
        *memory_lines(found.memory),
        *_given_back(found),
    ]


def memory_lines(memory: KvMemory) -> list[str]:
    """How the KV cache stands, for people."""
    refused = f" ({memory.reason})" if memory.reason else ""
    pages = f", pages of {memory.page_bytes >> 10:,} KiB" if memory.page_bytes else ""
    lines = [
        f"KV cache    {memory.backend}{refused}{pages}",
        f"            {_mb(memory.reserved)} of addresses reserved, {_mb(memory.full)} for a full context",
        f"            {_mb(memory.mapped)} mapped, {_mb(memory.used)} used, {_mb(memory.fragmentation)} between, "
        f"{_mb(memory.pool)} in the pool, {memory.conversations} conversations, {memory.evicted} evicted",
    ]
    if not memory.page_bytes:
        return lines
    costs = (
        f"{operation.name} {operation.count:,} x {operation.seconds / operation.count * 1e6:.0f} µs"
        for operation in memory.operations
        if operation.count
    )
    return [*lines, f"            {', '.join(costs)}; {memory.late} pages late in a cycle"]


def _given_back(found: Findings) -> list[str]:
    if not found.memory.page_bytes:
        return []
    words = f"{_mb(found.held)} held {found.seconds:.1f} s after the chat was closed"
    return [f"            {words}"]


def _held(engine: EngineLike) -> int:
    memory = engine.memory()
    return 0 if memory is None or not memory.page_bytes else memory.mapped + memory.pool


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
