"""The command line of `specular-cli models`."""

from __future__ import annotations

import argparse


def add_models_options(parser: argparse.ArgumentParser) -> None:
    """Its commands: list, info, add, remove, clear-cache."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="list | info | add | remove | clear-cache")
    listed = commands.add_parser("list", help="the models that this computer has")
    info = commands.add_parser("info", help="one line on a model, or on why it cannot be loaded")
    info.add_argument("paths", nargs="+", metavar="PATH", help="a folder, a .gguf file, or starter")
    add = commands.add_parser("add", help="put a model on the list; a repository of the hub is downloaded")
    add.add_argument("model", metavar="PATH|OWNER/NAME", help="a folder, a .gguf file, or a repository of the hub")
    add.add_argument("--file", metavar="NAME.gguf", help="of a repository: one of its GGUF files")
    add.add_argument("--revision", metavar="R", help="of a repository: a branch, tag or commit")
    remove = commands.add_parser("remove", help="take a model off the list; downloads are deleted")
    remove.add_argument("name", metavar="NAME", help="as the list calls it, or its path")
    clear = commands.add_parser("clear-cache", help="delete what was converted from GGUF files; it can be made again")
    for command in (remove, clear):
        command.add_argument("--yes", action="store_true", help="do not ask first")
    for command in (listed, info, add, remove, clear):
        command.add_argument("--json", action="store_true", help="print JSON, one object a line")
