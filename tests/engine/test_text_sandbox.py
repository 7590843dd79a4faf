"""Untrusted templates: no way out of the sandbox, no hang, no flood (case C11)."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

import pytest

from builders import CHATML, byte_tokenizer
from engine.errors import TemplateError
from engine.settings import Message
from engine.text.meter import TemplateRefused
from engine.text.sandbox import TemplateSandbox
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer

MESSAGES = [{"role": "user", "content": "Hello there"}, {"role": "assistant", "content": " ok "}]


def render(source: str) -> str:
    return TemplateSandbox(source).render_bounded({"messages": MESSAGES, "bos_token": "<s>", "tools": None})


ESCAPES = [
    "{{ cycler.__init__.__globals__.os.popen('touch MARKER').read() }}",
    "{{ joiner.__init__.__globals__['os'].system('touch MARKER') }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ ''['__class__'] }}",
    "{{ messages.__class__ is defined }}",
    "{{ '{0.__class__.__mro__}'.format('') }}",
    "{{ '{x.__class__}'.format_map({'x': 1}) }}",
    "{{ (messages | map(attribute='__class__') | list) }}",
    "{{ messages | selectattr('content.__class__') | list }}",
    "{{ raise_exception.__globals__ }}",
    "{{ self.__init__.__globals__ }}",
    "{% set x = dict.__base__ %}{{ x.__subclasses__() }}",
    "{% macro m() %}{% endmacro %}{{ m.__init__.__globals__ }}",
    "{{ range.__init__.__class__ }}",
]


@pytest.mark.parametrize("source", ESCAPES)
def test_nothing_reaches_python(source: str, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    with pytest.raises(TemplateRefused, match="reaches for '__"):
        render(source.replace("MARKER", str(marker)))
    assert not marker.exists()


@pytest.mark.parametrize(
    "source",
    [
        "{{ lipsum.__globals__.os }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{% extends 'x' %}",
        "{{ '' | attr('__class__') }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'role': 'x'}) }}",
        "{{ get_flashed_messages() }}",
    ],
)
def test_what_chat_templates_do_not_need_is_not_there(source: str) -> None:
    with pytest.raises(TemplateError):
        render(source)
    assert MESSAGES[0] == {"role": "user", "content": "Hello there"}


GROWTH = (
    "{% set ns = namespace(s='abcdefgh') %}{% for i in range(24) %}{% set ns.s = GROW %}{% endfor %}{{ ns.s | length }}"
)
LONG = "{% set s = 'a' * 3000000 %}"
FLOODS = [
    "{% for i in range(10 ** 9) %}x{% endfor %}",
    "{% for i in range(1, 10 ** 18, 2) %}x{% endfor %}",
    GROWTH.replace("GROW", "ns.s ~ ns.s"),
    GROWTH.replace("GROW", "ns.s + ns.s"),
    GROWTH.replace("GROW", "ns.s * 8"),
    GROWTH.replace("GROW", "[ns.s, ns.s]"),
    GROWTH.replace("GROW", "[ns.s] * 2"),
    GROWTH.replace("GROW", "(ns.s, ns.s)"),
    GROWTH.replace("GROW", "{'a': ns.s, 'b': ns.s}"),
    GROWTH.replace("GROW", "dict(a=ns.s, b=ns.s)"),
    GROWTH.replace("GROW", "ns.s.replace('a', ns.s)"),
    GROWTH.replace("GROW", "ns.s | replace('', ns.s)"),
    GROWTH.replace("GROW", "[ns.s, ns.s] | join"),
    GROWTH.replace("GROW", "'-'.join([ns.s, ns.s])"),
    GROWTH.replace("GROW", "'%s%s' % (ns.s, ns.s)"),
    GROWTH.replace("GROW", "'{}{}'.format(ns.s, ns.s)"),
    GROWTH.replace("GROW", "[ns.s, ns.s] | string"),
    GROWTH.replace("GROW", "[ns.s, ns.s] | tojson"),
    GROWTH.replace("GROW", "(ns.s | list) + (ns.s | list)"),
    GROWTH.replace("{% set ns.s = GROW %}", "{% set t %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = t %}"),
    "{% set ns = namespace(n=99) %}{% for i in range(24) %}{% set ns.n = ns.n * ns.n %}{% endfor %}",
    "{{ 9 ** (9 ** 9) }}",
    "{{ 'a' * 10 ** 10 }}{{ 10 ** 10 * 'a' }}",
    "{{ [1] * 10 ** 10 }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ '%*d' % (1000000000, 1) }}",
    "{{ '{:1000000000}'.format(1) }}",
    "{{ '{:{}}'.format(1, 1000000000) }}",
    "{{ 'a' | indent(1000000000, true) }}",
    "{{ [1] | tojson(indent=1000000000) }}",
    "{{ strftime_now('%1000000000d') }}",
    LONG + "{{ s.join(range(99999) | map('string')) }}",
    LONG + "{{ range(99999) | join(s) }}",
    LONG + "{{ s | list | length }}",
    LONG + "{{ ('%s' * 2000) % ((s,) * 2000) }}",
    LONG + "{{ ('{}' * 2000).format(*([s] * 2000)) }}",
    LONG + "{% for i in range(99999) %}{{ s }}{% endfor %}",
    LONG + "{% set t %}{% for i in range(99999) %}{{ s }}{% endfor %}{% endset %}",
    LONG + "{% macro m() %}{% for i in range(99999) %}{{ s }}{% endfor %}{% endmacro %}{{ m() }}",
    LONG + "{% set ns = namespace(l=[]) %}{% for i in range(999) %}{% set ns.l = ns.l + [s[i:]] %}{% endfor %}",
    LONG + "{% set ns = namespace(l=[]) %}{% for i in range(999) %}{% set ns.l = ns.l + [s | upper] %}{% endfor %}",
    "{% set t %}{% for i in range(99999) %}" + "x" * 5000 + "{% endfor %}{% endset %}",
]


@pytest.mark.parametrize("source", FLOODS)
def test_a_template_that_makes_too_much_is_stopped(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.text.meter.monotonic", lambda: 0.0)  # it is the amount that must stop it, not the time
    with pytest.raises(TemplateRefused, match=r"more text|too large|very wide|loops more|date format"):
        render(source)


ENDLESS = [
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}{% for j in range(99999) if false %}{% endfor %}{% endfor %}",
    "{% for i in range(99999) if range(99999) | select('gt', 5) | list | length == 3 %}{% endfor %}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(80) }}",
    "{% for m in [1, 2] recursive %}{% if loop.depth < 80 %}{{ loop([1, 2]) }}{% endif %}{% endfor %}",
    "{% set s = 'a' * 9999 %}{% for i in range(99999) %}{% if 'ab' in s %}{% endif %}{% endfor %}",
    "{% set l = range(99) | list %}{% for i in range(99999) %}{{ l | sort | first }}{% endfor %}",
]


@pytest.fixture
def fast_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock finds it a millisecond later, so a bound of seconds is a bound on looks."""
    ticks = itertools.count()
    monkeypatch.setattr("engine.text.meter.monotonic", lambda: next(ticks) / 1000)


@pytest.mark.usefixtures("fast_clock")
@pytest.mark.parametrize("source", ENDLESS)
def test_a_template_that_never_ends_is_stopped(source: str) -> None:
    with pytest.raises(TemplateRefused, match="more than 2 seconds"):
        render(source)


def test_the_time_bound_holds_in_any_thread() -> None:
    causes: list[str] = []

    def work() -> None:
        try:
            render(ENDLESS[0])
        except TemplateError as error:
            causes.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert causes == ["The chat template was stopped: it ran for more than 2 seconds."]


@pytest.mark.parametrize(
    "source",
    [
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% for m in messages recursive %}{{ loop(messages) }}{% endfor %}",
        "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
        "{{ " + "a+" * 15000 + "1 }}",
        "{{ " + "[" * 3000 + "]" * 3000 + " }}",
        "{% if x",
        "{{ 'a' | center(3) }}",
        "{{ 1 / 0 }}",
        "{{ undefined_thing.attribute }}",
        "{% break %}",
        "x" * 64_001,
    ],
)
def test_a_broken_template_is_one_sentence(source: str) -> None:
    with pytest.raises(TemplateError, match=r"^The chat template [^\n]*\.$"):
        render(source)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "{% for m in messages %}{{ m.role }}|{{ m['content'] | trim }};{% endfor %}",
            "user|Hello there;assistant|ok;",
        ),
        ("{{ bos_token + messages[-1]['role'].upper() }}", "<s>ASSISTANT"),
        ("{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.content }}{% endfor %}", " ok "),
        ("{{ messages | length }} {{ messages[1:] | length }} {{ messages[::-1][0].role }}", "2 1 assistant"),
        ("{{ {'a': 'é<', 'b': [1, none, true]} | tojson }}", '{"a": "é<", "b": [1, null, true]}'),
        ("{{ [1] | tojson(indent=1) }}", "[\n 1\n]"),
        ("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}", "2"),
        (
            "{{ messages | selectattr('role', 'eq', 'user') | map(attribute='content') | join(',') }}",
            "Hello there",
        ),
        ("{% generation %}{{ 'a' }}{% endgeneration %}b", "ab"),
        ("{{ 'x' if tools is none else 'y' }}{{ tools | default('z', true) }}", "xz"),
        ("{{ missing }}|{{ messages[0].tool_calls is defined }}|{{ none }}", "|False|None"),
        (
            "{{ '%s-%03d' % ('a', 7) }} {{ '{:>4}|{}'.format(1, 'b') }} {{ 2 ** 10 }} {{ 7 // 2 }}",
            "a-007    1|b 1024 3",
        ),
        ("{{ 'a</think>b'.split('</think>')[-1].lstrip('\\n') }}", "b"),
        ("{% macro hi(x) %}[{{ x }}]{% endmacro %}{{ hi('a') ~ 1 ~ none }}", "[a]1None"),
        ("{{ 'a\nb' | indent(2) }}|{{ 'aXa' | replace('X', '-') }}|{{ 'aa'.replace('a', 'b', 1) }}", "a\n  b|a-a|ba"),
        ("{{ messages[0].items() | list | length }}{{ messages[0].get('x', 'd') }}", "2d"),
        ("{{ ['b', 'a'] | sort | join }}{{ {'k': 1} | dictsort }}{{ [1, 1] | unique | list }}", "ab[('k', 1)][1]"),
        ("  {% if true %}\n x\n  {% endif %}\n", " x\n"),
    ],
)
def test_what_real_templates_use_works(source: str, expected: str) -> None:
    assert render(source) == expected


def test_long_chats_fit_the_bounds() -> None:
    """2,000 turns of 400 characters, with a template that looks at the whole list in every turn."""
    turns = [{"role": ("user", "assistant")[i % 2], "content": f"{i} " + "word " * 80} for i in range(2000)]
    source = (
        "{% for m in messages %}"
        "{% if messages[0]['role'] == 'system' or messages[-1].content == m.content %}{% endif %}"
        "{{ '<|im_start|>' + m['role'] + '\n' + m['content'] | trim + '<|im_end|>\n' }}{% endfor %}"
    )
    rendered = TemplateSandbox(source).render_bounded({"messages": turns})
    assert rendered.count("<|im_start|>") == 2000
    assert len(rendered) > 800_000


def test_one_very_long_message_fits_the_bounds() -> None:
    pasted = "word " * 200_000
    rendered = TemplateSandbox(CHATML).render_bounded({"messages": [{"role": "user", "content": pasted}]})
    assert pasted in rendered


# In a model's folder and in the box for a custom template

EVIL = "{{ cycler.__init__.__globals__.os.popen('touch MARKER').read() }}" + CHATML


def test_an_evil_template_of_a_folder_gives_way_to_a_fallback_with_a_note(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    folder = byte_tokenizer(tmp_path / "model", template=EVIL.replace("MARKER", str(marker)))
    tokenizer = Tokenizer.from_folder(folder)
    template = ChatTemplate.for_folder(folder, tokenizer)
    rendered = template.render_text([Message("user", "hi")], tokenizer)
    assert rendered == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert template.name == "ChatML"
    assert template.note is not None and "unsafe" in template.note and "'__init__'" in template.note
    with pytest.raises(TemplateError, match="unsafe"):
        ChatTemplate.from_string(EVIL.replace("MARKER", str(marker)), tokenizer)
    assert not marker.exists()


@pytest.mark.usefixtures("fast_clock")
@pytest.mark.parametrize("when", ["true", "messages[0].role == 'system'", "messages | length == 2"])
def test_an_endless_template_of_a_folder_is_found_when_it_is_loaded(tmp_path: Path, when: str) -> None:
    source = "{% if WHEN %}{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}{% endif %}"
    folder = byte_tokenizer(tmp_path, template=source.replace("WHEN", when) + CHATML)
    template = ChatTemplate.for_folder(folder, Tokenizer.from_folder(folder))
    assert template.name == "ChatML"
    assert template.note is not None and "more than 2 seconds" in template.note
