"""`specular-cli`: answers in the terminal, with the same engine as the window."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from engine.cli.arguments import BAD_INPUT, parse, request_for
from engine.cli.bench import bench
from engine.cli.calibrate import calibrate
from engine.cli.chat import chat
from engine.cli.doctor import doctor
from engine.cli.printer import ReplyPrinter
from engine.cli.prove import prove
from engine.cli.report import as_json, summary_line
from engine.cli.session import INTERRUPTED, EngineLike, Reply, StatusLine, load, real_engine, reply_to
from engine.cli.terminal import colour_wanted
from engine.errors import LoadCancelled, SpecularError
from engine.records import StopReason
from engine.settings import GenerateRequest


def generate(engine: EngineLike, options: argparse.Namespace) -> int:
    """Answer the prompt of the options; returns the exit status. Raises SpecularError for what cannot be done."""
    request = request_for(options)
    info, load_seconds = load(engine, options)
    for note in info.notes:
        print(note, file=sys.stderr)
    printer = ReplyPrinter(sys.stdout, colour_wanted(sys.stdout, options.no_color))
    try:
        reply = reply_to(engine, request, (lambda event: None) if options.json else printer.show)
    finally:
        printer.end()
    if options.json:
        readable = (sys.stdout.encoding or "").lower().startswith("utf")
        print(json.dumps(as_json(reply, info, load_seconds), ensure_ascii=not readable))
    else:
        print(summary_line(reply, sampled=not request.sampling.greedy), file=sys.stderr)
    if reply.interrupted:
        return INTERRUPTED
    if options.record_trace is not None:
        record(engine, request, reply, options.record_trace)
    if reply.finished and reply.finished.reason is StopReason.FAILED:
        print(reply.finished.message or "The reply failed.", file=sys.stderr)
        return 1
    return 0


def record(engine: EngineLike, request: GenerateRequest, reply: Reply, path: Path) -> None:
    """Make the reply again and add its trace to the file. Raises SpecularError where it cannot be written."""
    from engine.bench.traces import write_traces

    if not reply.token_ids or reply.finished is None:
        return
    StatusLine().show("Recording the trace")
    sampling = replace(request.sampling, seed=reply.finished.seed)
    again = replace(request, sampling=sampling, max_new_tokens=len(reply.token_ids))
    write_traces(path, [engine.record_trace(again)], append=True)
    StatusLine().clear()


COMMANDS: Mapping[str, Callable[[EngineLike, argparse.Namespace], int]] = {
    "generate": generate,
    "chat": chat,
    "prove": prove,
    "calibrate": calibrate,
    "doctor": doctor,
}


def main(arguments: Sequence[str] | None = None, make_engine: Callable[[], EngineLike] = real_engine) -> int:
    """Run `specular-cli` with `arguments` (those of the process when None); returns the exit status.

    0: answered, identical, calibrated or healthy. 1: the reply failed, a difference was found, or something is wrong.
    2: bad input, one sentence on stderr. 130: ended by Ctrl+C.
    """
    options = parse(arguments)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a narrow terminal encoding must not end a reply
    try:
        if options.command == "bench":
            return bench(options)
        if options.command == "models":
            from engine.cli.models import models  # as below

            return models(options)
        if options.command == "estimate":
            from engine.cli.estimate import show_estimate  # brings numpy, which --help need not wait for

            return show_estimate(options)
        StatusLine().show("Starting the engine")
        engine = make_engine()
        try:
            return COMMANDS[options.command](engine, options)
        finally:
            engine.close()
    except (LoadCancelled, KeyboardInterrupt):
        print("Stopped.", file=sys.stderr)
        return INTERRUPTED
    except SpecularError as error:
        print(f"specular-cli: {error}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:
        # The reader of a pipe has gone; give the interpreter's last flush somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
