"""Rendering of chat templates that come with a model and cannot be trusted.

Jinja's sandbox keeps a template from reaching Python; this narrows it further to the language chat templates use
(a list of filters and methods whose cost is known) and meters every loop turn, call, operation and output, so that
a template can neither run long nor fill the memory. Works in any thread and on any system: no signals, no process.
"""

from __future__ import annotations

import json
import re
import string
import threading
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import wraps
from typing import Any, NoReturn

import jinja2
from jinja2.ext import loopcontrols
from jinja2.filters import FILTERS
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment, SecurityError
from jinja2.tests import TESTS
from jinja2.utils import Namespace

from engine.errors import TemplateError
from engine.text.meter import Meter, TemplateRefused
from engine.text.template_code import Generation, MeteredCode

MAX_SOURCE = 64_000  # characters of a template
MAX_RANGE = 100_000

_FILTERS = (
    "abs capitalize count d default dictsort e escape first float forceescape groupby int items last length list lower "
    "map max min reject rejectattr reverse round safe select selectattr sort title trim truncate unique upper"
).split()
# Filters that hand on strings they were given and make none.
_HANDING_ON = frozenset("d default dictsort first groupby items last list max min safe sort unique".split())
_METHODS: dict[type, frozenset[str]] = {
    str: frozenset(
        "capitalize casefold count endswith find format index isalnum isalpha isascii isdecimal isdigit islower "
        "isnumeric isspace istitle isupper join lower lstrip partition removeprefix removesuffix replace rfind rindex "
        "rpartition rsplit rstrip split splitlines startswith strip swapcase title upper".split()
    ),
    list: frozenset(("count", "index", "copy")),
    tuple: frozenset(("count", "index")),
    dict: frozenset(("copy", "get", "items", "keys", "values")),
    int: frozenset(),
    float: frozenset(("is_integer",)),
}
_WIDE = re.compile(r"\d{4,}|[{*]")
_PERCENT = re.compile(r"%(?:\([^)]*\))?([-#0 +\d.*]*)")


class TemplateRaised(jinja2.TemplateError):
    """The template itself refused the messages, by `raise_exception`."""


class _PlainNamespace(Namespace):
    """Jinja's namespace, but printing one prints a word: its own way prints whatever hangs below it."""

    def __repr__(self) -> str:
        return "<namespace>"


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """The environment of one template. `render_bounded` is its only use from outside."""

    code_generator_class = MeteredCode
    intercepted_binops = frozenset(("+", "*", "%", "**"))

    def __init__(self, source: str) -> None:
        """Compile `source`. Raises TemplateError naming what is wrong with it."""
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, Generation], optimized=False)
        self._meter: Meter | None = None
        self._lock = threading.Lock()
        self.finalize = self.shown
        self.filters = {name: self._counted(FILTERS[name], name in _HANDING_ON) for name in _FILTERS}
        self.filters |= {name: getattr(self, f"filter_{name}") for name in ("indent", "join", "replace", "string")}
        self.filters["tojson"] = self.filter_tojson
        self.tests = {name: self._counted(test, False) for name, test in TESTS.items()}
        self.globals = {
            "dict": dict,
            "namespace": _PlainNamespace,
            "joiner": jinja2.utils.Joiner,
            "cycler": jinja2.utils.Cycler,
            "range": _short_range,
            "raise_exception": _raise_exception,
            "strftime_now": _strftime_now,
        }
        if len(source) > MAX_SOURCE:
            raise TemplateError(f"The chat template is {len(source)} characters long; at most {MAX_SOURCE} are read.")
        try:
            self._template = self.from_string(source)
        except Exception as error:  # the source is anyone's; whatever it provokes is its fault
            raise TemplateError(f"The chat template cannot be read: {_cause(error)}.") from error

    def render_bounded(self, variables: dict[str, Any]) -> str:
        """The rendered text. Raises TemplateRefused for an unsafe access or too much time or text, and TemplateError
        for any other failure, the template's own `raise_exception` among them.
        """
        with self._lock:
            self._meter = Meter()
            try:
                pieces: list[str] = []
                for piece in self._template.generate(variables):
                    self._meter.charge(len(piece))
                    pieces.append(piece)
                return "".join(pieces)
            except TemplateError:
                raise
            except SecurityError as error:
                raise TemplateRefused(f"The chat template is unsafe: {_cause(error)}.") from error
            except Exception as error:  # as above
                raise TemplateError(f"The chat template failed: {_cause(error)}.") from error
            finally:
                self._meter = None

    # What compiled templates call

    @property
    def meter(self) -> Meter:
        """The meter of the rendering in progress; without one (constants folded while compiling) nothing may run."""
        if self._meter is None:
            raise TemplateError("A chat template computes only while it is rendered.")
        return self._meter

    def turn(self, literal: int) -> None:
        """A loop turn whose body holds `literal` characters of plain text."""
        self.meter.charge(literal)

    def made(self, value: Any) -> Any:
        """A value was made or compared."""
        return self.meter.made(value)

    def shown(self, value: Any) -> Any:
        """A value is about to be printed."""
        self.meter.printed(value)
        return value

    def concat_parts(self, parts: tuple[Any, ...]) -> str:
        """`a ~ b ~ c`."""
        self.meter.printed(*parts)
        return "".join(map(str, parts))

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        self.meter.charge(0)
        owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
        if isinstance(owner, str) and name == "join" and len(args) == 1:
            return self.filter_join(args[0], owner)
        if isinstance(owner, str) and name == "replace" and len(args) >= 2:
            return self.filter_replace(owner, *args[:3])
        result = super().call(context, function, *args, **kwargs)
        return self.meter.held(result) if isinstance(owner, dict | list) else self.made(result)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "*":
            self.meter.product(left, right)
        elif operator == "**":
            self.meter.power(left, right)
        elif operator == "%" and isinstance(left, str):
            if any(_WIDE.search(flags) for flags in _PERCENT.findall(left)):
                raise SecurityError("a format asks for a very wide field")
            self.meter.charge(len(left))
            self.meter.printed(*[right] * left.count("%"))
        return self.made(super().call_binop(context, operator, left, right))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        for kind, names in _METHODS.items():
            if isinstance(obj, kind):
                return attr in names
        return super().is_safe_attribute(obj, attr, value)

    def unsafe_undefined(self, obj: Any, attribute: str) -> Any:
        if attribute.startswith("_") or not isinstance(obj, tuple(_METHODS)):
            raise SecurityError(f"it reaches for {attribute!r} of a {type(obj).__name__}")
        return self.undefined(obj=obj, name=attribute)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        inner = super().wrap_str_format(value)
        if inner is None:
            return None
        pattern = str(value.__self__)

        def bounded(*args: Any, **kwargs: Any) -> str:
            fields = [spec or "" for _, name, spec, _ in string.Formatter().parse(pattern) if name is not None]
            if any(_WIDE.search(spec) for spec in fields):
                raise SecurityError("a format asks for a very wide field")
            self.meter.charge(len(pattern))
            self.meter.printed(*[[*args, *kwargs.values()]] * len(fields))
            return inner(*args, **kwargs)

        return bounded

    # Filters whose result can be much larger than what they are given

    def filter_join(self, value: Iterable[Any], d: str = "", attribute: str | int | None = None) -> str:
        """`items | join(", ")`."""
        parts: list[str] = []
        for item in value:
            part = item if attribute is None else self.getitem(item, attribute)
            self.meter.printed(part, d)
            parts.append(str(part))
        return str(self.made(str(d).join(parts)))

    def filter_replace(self, s: Any, old: str, new: str, count: int | None = None) -> str:
        """`text | replace("a", "b")`."""
        text, old, new = str(s), str(old), str(new)
        found = text.count(old) if count is None or count < 0 else min(text.count(old), count)
        self.meter.charge(len(text) + found * len(new))
        return text.replace(old, new, -1 if count is None else count)

    def filter_indent(self, s: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
        """`text | indent(2)`."""
        text = str(s)
        self.meter.charge(len(text) + (text.count("\n") + 1) * (len(width) if isinstance(width, str) else width))
        return str(FILTERS["indent"](text, width, first, blank))

    def filter_string(self, value: Any) -> str:
        """`value | string`."""
        return str(self.shown(value))

    def filter_tojson(
        self,
        value: Any,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        """`value | tojson`, not escaped for HTML: the text is for a model."""
        if indent is not None and not 0 <= indent <= 16:
            raise SecurityError("tojson asks for a very wide indent")
        self.shown(value)
        made = json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
        return str(self.made(made))

    def _counted(self, function: Any, hands_on: bool) -> Callable[..., Any]:
        @wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.meter.charge(0)
            result = function(*args, **kwargs)
            return self.meter.held(result) if hands_on else self.meter.made(result)

        return counted


def _short_range(*args: int) -> range:
    numbers = range(*args)
    if len(numbers) > MAX_RANGE:
        raise TemplateRefused(f"The chat template was stopped: it loops more than {MAX_RANGE} times.")
    return numbers


def _raise_exception(message: str) -> NoReturn:
    raise TemplateRaised(message)


def _strftime_now(pattern: str) -> str:
    if len(pattern) > 100 or re.search(r"%[^a-zA-Z%]*\d", pattern):
        raise SecurityError("a date format is too long")
    return datetime.now().strftime(pattern)


def _cause(error: Exception) -> str:
    """One line of an exception's text, or its kind where it has none."""
    text = " ".join(str(error).split()).rstrip(".")
    return text[:200] or type(error).__name__
