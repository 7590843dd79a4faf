"""How a metered template is compiled: the Python code Jinja makes of it reports to the environment as it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.ext import Extension
from jinja2.parser import Parser


class MeteredCode(CodeGenerator):
    """Compiles a template so that loops, comparisons and everything that makes a value report to the meter."""

    def visit_For(self, node: nodes.For, frame: Frame) -> None:
        literal = sum(len(data.data) for data in node.find_all(nodes.TemplateData))
        turn = nodes.Call(nodes.EnvironmentAttribute("turn"), [nodes.Const(literal)], [], None, None)
        node.body.insert(0, nodes.ExprStmt(turn).set_lineno(node.lineno))
        super().visit_For(node, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        self.write("environment.concat_parts((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:
        if isinstance(node.arg, nodes.Slice):
            self._metered(super().visit_Getitem, node, frame)
        else:
            super().visit_Getitem(node, frame)

    def visit_List(self, node: nodes.List, frame: Frame) -> None:
        self._metered(super().visit_List, node, frame)

    def visit_Tuple(self, node: nodes.Tuple, frame: Frame) -> None:
        if node.ctx == "load":
            self._metered(super().visit_Tuple, node, frame)
        else:
            super().visit_Tuple(node, frame)

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:
        self._metered(super().visit_Dict, node, frame)

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:
        self._metered(super().visit_Compare, node, frame)

    def _metered(self, visit: Callable[[Any, Frame], None], node: nodes.Node, frame: Frame) -> None:
        self.write("environment.made(")
        visit(node, frame)
        self.write(")")


class Generation(Extension):
    """`{% generation %}`, which training tools use to mark the assistant's text: its body, unchanged."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        line = next(parser.stream).lineno
        return [nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)]
