"""The one way in which text of a model becomes HTML: Markdown, then an allow list.

`render` takes a whole text; `BlockStream` takes a text that is still being written and hands out each finished Markdown
block once, and the open tail as often as `tick` is called. Both cut the text at the same places and make the same HTML.

The parser escapes raw HTML and lets an author choose no attribute; what it makes still passes the cleaner. Nothing is
fetched: a picture becomes a link. Text beyond `MARKDOWN_LIMIT` characters is shown as it is written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from mdit_py_plugins.tasklists import tasklists_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

MARKDOWN_LIMIT = 200_000
LONG_TAIL = 8_000
HIGHLIGHT_LIMIT = 4_000  # some lexers are quadratic
TASK_LIMIT = 200  # so is the plugin for task lists

_TAGS = "p br hr h3 h4 h5 h6 ul ol li blockquote pre code span em strong s a div table thead tbody tr th td"
_CLEANER = nh3.Cleaner(
    tags=set(_TAGS.split()),
    clean_content_tags={"script", "style"},
    attributes={
        "a": {"href", "title"},
        "ol": {"start"},
        "pre": {"tabindex"},
        "div": {"class", "tabindex"},
        **{tag: {"class"} for tag in ("code", "span", "li", "ul", "th", "td")},
    },
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
    link_rel="noopener noreferrer nofollow ugc",
)


def render(markdown: str) -> SafeString:
    """Return the HTML of a whole Markdown text."""
    text = _line_ends(markdown)
    html = _html(_FINISHED, text[:MARKDOWN_LIMIT], {})
    rest = "".join(map(_as_written, _pieces(text[MARKDOWN_LIMIT:])))
    return mark_safe(html + rest)  # noqa: S308  the cleaner made the first, `escape` the second


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a rendered block: part number `part` from 0; one that is not `final` is replaced by the next."""

    part: int
    html: str
    final: bool


@dataclass(slots=True)
class _Closed:
    """A Markdown block that is finished; `references` counts the link references known when it was rendered."""

    source: str
    html: str
    references: int


class BlockStream:
    """Renders one text while it is written.

    `feed` may be called from another thread while `tick` runs; `tick`, `finish` and `replay` are called one at a time.
    `behind` tells that the last tick kept some of a long tail back: one more, without news, brings it.
    A link reference counts for the blocks after it until `finish`, which sends the blocks before it once more.
    """

    def __init__(self) -> None:
        self._incoming: deque[str] = deque()
        self._carriage_return = False
        self._room = MARKDOWN_LIMIT
        self._open = ""
        self._overflow = ""
        self._env: dict[str, Any] = {}
        self._closed: list[_Closed] = []
        self._shown = ""  # the HTML of the tail that the reader has
        self._parse_at = 0
        self._show_at = 0
        self.behind = False
        self._finished = False

    def feed(self, text: str) -> None:
        """Take in the next piece of the text."""
        self._incoming.append(text)

    def tick(self) -> list[Part]:
        """Return what has changed since the last tick: closed parts, then the open tail."""
        grew = self._take_in()
        if self._finished or not (grew or self.behind):
            return []
        first = len(self._closed)
        if len(self._open) >= self._parse_at:
            self._close_blocks()
        if not self._room:
            self._close_rest()
            self._close_overflow(whole=False)
        parts = [Part(first + n, block.html, True) for n, block in enumerate(self._closed[first:])]
        self.behind = grew and not parts and len(self._open) < self._show_at
        if not self.behind:
            tail = self._tail()
            if tail != self._shown:
                self._shown = tail
                parts.append(Part(len(self._closed), tail, False))
        return parts

    def finish(self) -> list[Part]:
        """Close everything and return what the reader lacks; all final parts together are `render` of the text."""
        if self._finished:
            return []
        self._take_in(last=True)
        self._finished = True
        first, had_tail = len(self._closed), bool(self._shown)
        self._close_blocks()
        self._close_rest()
        self._close_overflow(whole=True)
        self._shown = ""
        parts = [
            Part(n, block.html, True) for n, block in enumerate(self._closed) if n >= first or self._renewed(block)
        ]
        if had_tail and len(self._closed) == first:
            parts.append(Part(first, "", True))
        return parts

    def replay(self) -> list[Part]:
        """Return everything that was handed out so far, for a reader who comes late."""
        parts = [Part(n, block.html, True) for n, block in enumerate(self._closed)]
        return [*parts, Part(len(parts), self._shown, False)] if self._shown else parts

    def _take_in(self, *, last: bool = False) -> bool:
        pieces = []
        while self._incoming:
            pieces.append(self._incoming.popleft())
        text = "".join(pieces)
        if self._carriage_return:
            text, self._carriage_return = "\r" + text, False
        if text.endswith("\r") and not last:  # the line feed that belongs to it may come next
            text, self._carriage_return = text[:-1], True
        text = _line_ends(text)
        self._open += text[: self._room]
        self._overflow += text[self._room :]
        self._room -= min(self._room, len(text))
        return bool(text)

    def _close_blocks(self) -> None:
        """Close every top-level block but the last one, which may still grow."""
        whole = self._open[: self._open.rfind("\n") + 1]  # a line still being written may become anything
        starts = [
            t.map[0] for t in _bounded(_DRAFT, whole).parse(whole, {}) if t.level == 0 and t.map and t.nesting >= 0
        ]
        long = len(self._open) > LONG_TAIL
        self._parse_at = len(self._open) * 5 // 4 if long else 0  # never quadratic
        if len(starts) > 1:
            lines = self._open.split("\n")  # not splitlines(): the parser knows no other line end
            for begin, end in zip([0, *starts[1:-1]], starts[1:], strict=True):
                self._close("\n".join(lines[begin:end]) + "\n")
            self._open, self._parse_at, self._show_at = "\n".join(lines[starts[-1] :]), 0, 0

    def _close(self, source: str) -> None:
        html = _html(_FINISHED, source, self._env)
        self._closed.append(_Closed(source, html, self._references()))
        self._shown = ""

    def _close_rest(self) -> None:
        if self._open:
            self._close(self._open)
            self._open = ""

    def _close_overflow(self, *, whole: bool) -> None:
        while len(self._overflow) >= LONG_TAIL or (whole and self._overflow):
            piece, self._overflow = self._overflow[:LONG_TAIL], self._overflow[LONG_TAIL:]
            self._closed.append(_Closed("", _as_written(piece), self._references()))
            self._shown = ""

    def _tail(self) -> str:
        if self._overflow:
            return _as_written(self._overflow)
        if len(self._open) > LONG_TAIL:
            self._show_at = len(self._open) * 17 // 16  # what is sent stays in proportion to what was said
            return _as_written(self._open)
        known = {**self._env, "references": dict(self._env.get("references", {}))}
        return _html(_DRAFT, self._open, known)

    def _references(self) -> int:
        return len(self._env.get("references", ()))

    def _renewed(self, block: _Closed) -> bool:
        """Render `block` again if a link reference came after it; tell whether that changed it."""
        if "[" not in block.source or block.references == self._references():
            return False
        before, block.html = block.html, _html(_FINISHED, block.source, self._env)
        return block.html != before


def _line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _pieces(text: str) -> Iterable[str]:
    return (text[at : at + LONG_TAIL] for at in range(0, len(text), LONG_TAIL))


def _as_written(text: str) -> str:
    return f'<pre class="as-written" tabindex="0">{escape(text)}</pre>\n'


def _html(parser: MarkdownIt, source: str, env: dict[str, Any]) -> str:
    return _CLEANER.clean(_bounded(parser, source).render(source, env))


def _bounded(parser: MarkdownIt, source: str) -> MarkdownIt:
    """Return the parser without task lists where there are too many boxes."""
    if sum(map(source.count, ("[ ]", "[x]", "[X]"))) <= TASK_LIMIT:
        return parser
    return _FINISHED_WITHOUT_TASKS if parser is _FINISHED else _DRAFT_WITHOUT_TASKS


def _coloured(code: str, language: str, attributes: str) -> str:
    if not language or len(code) > HIGHLIGHT_LIMIT:
        return escape(code)
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return escape(code)
    return highlight(code, lexer, HtmlFormatter(nowrap=True))


def _plain(code: str, language: str, attributes: str) -> str:
    return escape(code)


def _code(self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
    words = tokens[at].info.split()
    language = words[0] if words else ""
    body = options.highlight(tokens[at].content, language, "") if options.highlight else ""
    name = f' class="language-{escape(language)}"' if language else ""
    return f'<pre tabindex="0"><code{name}>{body}</code></pre>\n'


def _picture(self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[at]
    address = str(token.attrGet("src") or "")
    name = self.renderInlineAsText(token.children, options, env) if token.children else ""
    label = escape(f"Picture: {name or address}")
    return label if token.meta.get("inside a link") else f'<a href="{escape(address)}">{label}</a>'


def _note_links(state: StateCore) -> None:
    """Note which pictures stand inside a link, once for all: a link inside a link is no link."""
    for block in state.tokens:
        depth = 0
        for token in block.children or ():
            if token.type == "image":
                token.meta["inside a link"] = depth > 0
            else:
                depth += {"link_open": 1, "link_close": -1}.get(token.type, 0)


def _checkbox(self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
    """Draw the box of a task; raw HTML is off, so the task plugin is the only source of this token."""
    return '<span class="task-box">{}</span>'.format("☑" if "checked=" in tokens[at].content else "☐")


def _table(self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
    return '<div class="table" tabindex="0"><table>\n' if tokens[at].nesting > 0 else "</table></div>\n"


def _cell(self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
    style = str(tokens[at].attrs.pop("style", ""))
    if style:  # the page's policy refuses inline styles
        tokens[at].attrSet("class", "align-" + style.rpartition(":")[2])
    return self.renderToken(tokens, at, options, env)


def _lower_headings(state: StateCore) -> None:
    """An answer stands below headings of the page: its levels begin at 3."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"


def _parser(colour: Any, *, tasks: bool = True) -> MarkdownIt:
    options = {"html": False, "highlight": colour, "maxNesting": 20}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    if tasks:
        parser.use(tasklists_plugin)
    parser.core.ruler.push("lower_headings", _lower_headings)
    parser.core.ruler.push("note_links", _note_links)
    rules = {
        "fence": _code,
        "code_block": _code,
        "image": _picture,
        "html_inline": _checkbox,
        "table_open": _table,
        "table_close": _table,
        "th_open": _cell,
        "td_open": _cell,
    }
    for name, rule in rules.items():
        parser.add_render_rule(name, rule)
    return parser


_FINISHED = _parser(_coloured)
_FINISHED_WITHOUT_TASKS = _parser(_coloured, tasks=False)
_DRAFT_WITHOUT_TASKS = _parser(_plain, tasks=False)
_DRAFT = _parser(_plain)  # the open tail is drawn again and again: without colours
