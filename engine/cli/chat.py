"""`specular-cli chat`: a conversation in the terminal."""

from __future__ import annotations

import argparse
import contextlib
import sys

from engine.cli.arguments import request_for, system_message
from engine.cli.printer import ReplyPrinter
from engine.cli.report import summary_line
from engine.cli.session import EngineLike, load, reply_to
from engine.cli.terminal import DIM, LEGEND, RESET, colour_wanted
from engine.errors import SpecularError
from engine.settings import Message

COMMANDS = "/new starts afresh, /system TEXT sets the instructions, /quit leaves; Ctrl+C stops a reply, twice quits."


class Chat:
    """A conversation with a loaded engine: the turns so far and the terminal they are shown in."""

    def __init__(self, engine: EngineLike, options: argparse.Namespace) -> None:
        self._engine = engine
        self._options = options
        self._turns: list[Message] = []
        self._colour = colour_wanted(sys.stdout, options.no_color)
        self._asks = sys.stdin.isatty()

    def run(self) -> None:
        """Talk until /quit, the end of the input, or two Ctrl+C in a row."""
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401 (importing it gives `input` editing and a history)
        interrupted = False
        while True:
            try:
                line = input("\n> " if self._asks else "").strip()
            except EOFError:
                return
            except KeyboardInterrupt:
                if interrupted:
                    return
                interrupted = True
                self._say("Ctrl+C once more leaves.")
                continue
            interrupted = False
            if line == "/quit":
                return
            if line.startswith("/"):
                self._command(line)
            elif line:
                interrupted = self._answer(line)

    def _command(self, line: str) -> None:
        name, _, text = line.partition(" ")
        if name == "/new":
            self._turns.clear()
            self._say("A new conversation.")
        elif name == "/system":
            self._options.system = text.strip() or None
            self._say("The instructions are set." if text.strip() else "There are no instructions now.")
        else:
            self._say(COMMANDS)

    def _answer(self, text: str) -> bool:
        """Reply to `text` and keep both turns; returns whether Ctrl+C cut the reply short."""
        messages = (*system_message(self._options), *self._turns, Message("user", text))
        printer = ReplyPrinter(sys.stdout, self._colour)
        try:
            request = request_for(self._options, messages)
            reply = reply_to(self._engine, request, printer.show)
        except SpecularError as error:
            self._say(str(error))
            return False
        finally:
            printer.end()
        self._turns += [Message("user", text), Message("assistant", reply.text)]
        if reply.finished and reply.finished.message:
            self._say(reply.finished.message)
        self._say(summary_line(reply, sampled=not request.sampling.greedy))
        return reply.interrupted

    def _say(self, text: str) -> None:
        """A remark of the programme, apart from the conversation."""
        print(f"{DIM}{text}{RESET}" if self._colour else text, file=sys.stderr, flush=True)


def chat(engine: EngineLike, options: argparse.Namespace) -> int:
    """Load the model and talk; returns the exit status. Raises SpecularError when the model cannot be loaded."""
    request_for(options, (Message("user", "checks the numbers before the model is loaded"),))
    info, seconds = load(engine, options)
    print(f"{info.name}, {info.device}, ready in {seconds:.1f} s. {COMMANDS}", file=sys.stderr)
    for note in info.notes:
        print(note, file=sys.stderr)
    if colour_wanted(sys.stdout, options.no_color):
        print(LEGEND)
    Chat(engine, options).run()
    return 0
