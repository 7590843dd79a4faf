"""Formatting a text: what is shown of each character, in its place, and what of a growing text is settled."""

from __future__ import annotations

import random
import time

import pytest

from app.markdown.blocks import format_text
from app.markdown.lines import BOLD, CODE, ITALIC, LINK, MATH, NOTHING, STRIKE, Formatted, LineKind
from app.markdown.shown import displayed
from app.markdown.tail import WINDOW, Tail

MIXED = """# Head **b** ##
para *em* and **strong `c` x** [link *a*](http://foo.com/b_c "t") ~~gone~~
second\\* line &amp; &#128512; <b>html</b> https://x.org/a_b. 😀**重点**。

- item one
  cont
  - nested
    ```py
    x = 1
    ```
10. ten

> quote **q**
> > deep

| a | b \\| c | d |
|---|:-:|--:|
| 1 | **2** | `3` | extra |

```python
def f(): **no**
```

Set
===
---
"""


def seen(text: str) -> list[str]:
    formatted = format_text(text)
    return [formatted.display(line).replace(NOTHING, "") for line in formatted.lines]


def kinds(text: str) -> list[LineKind]:
    return [line.kind for line in format_text(text).lines]


def styled(text: str) -> dict[str, int]:
    formatted = format_text(text)
    runs = [run for line in formatted.lines for run in formatted.runs(line) if run.style]
    return {"".join(formatted.shown[run.start : run.stop]).replace(NOTHING, ""): run.style for run in runs}


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass"))


def test_every_kind_of_block_is_made_out() -> None:
    assert seen(MIXED)[:3] == [
        "Head b",
        "para em and strong c x link a gone",
        "second* line & 😀 <b>html</b> https://x.org/a_b. 😀重点。",
    ]
    assert seen(MIXED)[4:11] == ["• item one", "cont", "◦ nested", "py", "x = 1", "", "10. ten"]
    assert kinds(MIXED)[6:10] == [LineKind.TEXT, LineKind.FENCE_OPEN, LineKind.CODE, LineKind.FENCE_CLOSE]
    assert seen(MIXED)[15:18] == ["a\tb | c\td", "", "1\t2\t3\t extra "]
    assert kinds(MIXED)[15:18] == [LineKind.HEAD, LineKind.HIDDEN, LineKind.ROW]
    assert seen(MIXED)[20] == "def f(): **no**"
    lines = format_text(MIXED).lines
    assert (lines[0].heading, lines[23].heading, lines[24].kind, lines[25].kind) == (
        1,
        1,
        LineKind.HIDDEN,
        LineKind.RULE,
    )
    assert (lines[12].quotes, lines[13].quotes) == (1, 2)
    assert (lines[4].lists, lines[6].lists, lines[10].hang) == (1, 2, "10. ")
    assert lines[17].aligns == ("", "center", "right")


def test_styles_lie_on_the_characters_they_are_of() -> None:
    found = styled(MIXED)
    assert found["em"] == ITALIC and found["gone"] == STRIKE and found["重点"] == BOLD
    assert found["strong "] == BOLD and found["c"] == BOLD | CODE
    assert found["link "] == LINK and found["a"] == LINK | ITALIC
    assert found["https://x.org/a_b"] == LINK and found["2"] == BOLD and found["3"] == CODE
    hrefs = {run.href for run in format_text(MIXED).links}
    assert hrefs == {"http://foo.com/b_c", "https://x.org/a_b"}


def keeps_places(text: str) -> Formatted:
    formatted = format_text(text)
    assert len(formatted.shown) == len(formatted.styles) == len(text)
    assert units("".join(formatted.shown)) == units(text)
    for line in formatted.lines:
        assert "\n" not in formatted.display(line)
    assert "\n".join(text[line.start : line.stop] for line in formatted.lines) == text
    return formatted


def test_no_character_moves_in_any_text() -> None:
    """What is shown has the source's length, line by line: the marks of tokens stay on their text."""
    pieces = [
        *"*_`~[]()!<>#-+|\\$&;:\n\n  \t12.",
        "```",
        "**",
        "a",
        "b c",
        "😀",
        "重",
        "http://a.b",
        "\r\n",
        "&amp;",
        "> ",
        "- ",
    ]
    rng = random.Random(7)
    for _ in range(400):
        keeps_places("".join(rng.choice(pieces) for _ in range(rng.randint(1, 60))))
    keeps_places(MIXED)


def test_emphasis_needs_no_spaces_in_chinese() -> None:
    assert seen("**起草。**同一模型，**“重点”**和*强调*（**甲**）")[0] == "起草。同一模型，“重点”和强调（甲）"
    assert styled("**起草。**同一")["起草。"] == BOLD
    assert seen("2 * 3 * 4 and a ** b **")[0] == "2 * 3 * 4 and a ** b **"
    assert seen("他说：**好**。**坏**")[0] == "他说：好。坏"


def test_the_first_dash_of_a_list_makes_no_heading_of_the_line_above() -> None:
    assert format_text("Three things:\n-", growing=True).lines[0].heading == 0
    assert format_text("Three things:\n--", growing=True).display(format_text("a\n").lines[0])[:1] == "T"
    assert format_text("Three things:\n-").lines[0].heading == 2 == format_text("Title\n---\n").lines[0].heading
    assert format_text("x\n\n---", growing=True).lines[2].kind is LineKind.RULE


def test_latex_is_left_alone() -> None:
    text = "in $a_b * c_d$ and \\(x_1*y*\\), \\[z\\] not *m*\n\n$$\na_1 = \\{b\\}\n+ c\n$$\ncosts $5 and $6"
    assert seen(text)[0] == "in $a_b * c_d$ and \\(x_1*y*\\), \\[z\\] not m"
    assert seen(text)[2:6] == ["$$", "a_1 = \\{b\\}", "+ c", "$$"]
    assert styled(text)["$a_b * c_d$"] == MATH and styled(text)["a_1 = \\{b\\}"] == MATH
    assert not any("$5" in words for words in styled(text))


def test_html_is_text_and_pictures_are_links() -> None:
    text = "<script>alert(1)</script>\n\n<img src=file:///etc/passwd>\n\n"
    text += "![alt](http://i/p.png) ![](x.png) [f](file:///x) [j](javascript:1)"
    assert seen(text)[0] == "<script>alert(1)</script>" and seen(text)[2] == "<img src=file:///etc/passwd>"
    assert seen(text)[4] == "alt ![](x.png) [f](file:///x) [j](javascript:1)", "a link to a file is no link"
    assert {run.href for run in format_text(text).links} == {"http://i/p.png", "x.png"}


@pytest.mark.parametrize(
    "text",
    [
        "> " * 500 + "deep",
        "\n".join("  " * i + "- x" for i in range(300)),
        "- " * 800,
        "[" * 2000 + "a" + "](b)" * 500,
        "*" * 3000 + "a" + "_" * 900,
        "`" * 1500 + " " + "``" * 700,
        "$$ " * 1300,
        "\\( " * 1300,
        "|a" * 1500 + "|\n" + "|-" * 1500 + "|\n",
        "<" * 3000,
        "&" * 3900,
        "```\nnever closed\n" + "x\n" * 1900,
        "a\u202eb\x00\x1b[31m\u0301\ud800\udc00\udfff",
    ],
    ids=lambda text: repr(text[:8]),
)
def test_hostile_texts_cost_little_and_keep_their_places(text: str) -> None:
    began = time.thread_time()
    keeps_places(text)
    assert time.thread_time() - began < 2, "seconds for a window of text, with room for a slow machine"


def test_what_would_deceive_or_break_lines_is_shown_as_something_as_long() -> None:
    text = "a\u202eb\u2066c\x00\x1b\x7f\r\u2029\ufffcd" + "e" + "\u0301" * 300 + "é\x85\udc80"
    shown = displayed(text)
    assert units(shown) == units(text)
    assert shown[:10] == "a\ufffdb\ufffdc\u2400\u241b\u2421\u200b\u2028"
    assert shown.count("\u0301") == 4, "marks do not pile up over other lines"
    assert displayed("tab\tand 中文 ไทยี่ é") == "tab\tand 中文 ไทยี่ é"


def settled(text: str, pieces: int) -> tuple[int, Tail]:
    """Characters that were parsed while a text came in pieces, and the tail."""
    tail, parsed = Tail(), 0
    for i in range(0, len(text), pieces):
        tail.add(text[i : i + pieces])
        parsed += sum(len(step.formatted.shown) for step in tail.steps() if step.formatted)
    return parsed, tail


def test_a_block_is_not_parsed_again_when_the_next_has_begun() -> None:
    paragraph = "some words of a paragraph " * 4 + "\n\n"
    short, _ = settled(paragraph * 10, 10)
    long, tail = settled(paragraph * 40, 10)
    assert long < 4.4 * short, "linear in the length"
    assert len(tail.text) <= len(paragraph)
    items, tail = settled("- an item of some words\n" * 100, 5)
    assert tail.text.count("- ") <= 2 and items < 100 * 24 * 12, "items of a list are settled one by one"


def test_long_blocks_are_formatted_in_windows_and_endless_lines_not_at_all() -> None:
    tail = Tail()
    tail.add("> quoted words\n" * 1000)
    steps = list(tail.steps())
    assert all(step.formatted and len(step.formatted.shown) <= WINDOW for step in steps)
    assert all(line.quotes for step in steps if step.formatted for line in step.formatted.lines[:-1])
    tail = Tail()
    tail.add("*x* " * WINDOW)
    assert list(tail.steps()) == []
    tail.add("\n*y*")
    first, second = tail.steps()
    assert first.formatted is None and second.formatted is not None and tail.text == "*y*"
