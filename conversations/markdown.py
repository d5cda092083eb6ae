"""Markdown in, harmless HTML out: the parser, how it draws, and the allow list that all of it passes.

The parser escapes raw HTML and lets an author choose no attribute; what it makes still passes the cleaner. Nothing is
fetched: a picture becomes a link. What the parser cannot read is shown as it is written.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import nh3
from django.utils.html import escape
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from mdit_py_plugins.tasklists import tasklists_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

logger = logging.getLogger("conversations.rendering")

HIGHLIGHT_LIMIT = 4_000  # some lexers are quadratic
TASK_LIMIT = 200  # so is the plugin for task lists
CELL_LIMIT = 5_000  # of all tables of a text: the parser fills up each short row

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


def html_of(source: str, env: dict[str, Any], *, draft: bool = False) -> str:
    """Return the HTML of a Markdown text; `env` keeps what later parts need to know, and a `draft` is not coloured."""
    try:
        return _CLEANER.clean(_parser_for(source, draft=draft).render(source, env))
    except Exception:  # a fault in a parser or lexer must cost no page and no turn
        logger.exception("a text of %d characters could not be rendered", len(source))
        return as_written(source)


def block_starts(source: str, cells: int) -> list[int]:
    """Return the lines on which the top-level blocks begin, after so many table cells; [] if it cannot be read."""
    try:
        tokens = _parser_for(source, draft=True).parse(source, {"cells": cells})
    except Exception:  # `html_of` tells of it
        return []
    return [token.map[0] for token in tokens if token.level == 0 and token.map and token.nesting >= 0]


def cells_in(env: EnvType) -> int:
    """Return how many table cells the parts of a text have so far."""
    return int(env.get("cells", 0))


def as_written(text: str) -> str:
    """Return the HTML that shows a text as it is."""
    return f'<pre class="as-written" tabindex="0">{escape(text)}</pre>\n'


def _parser_for(source: str, *, draft: bool) -> MarkdownIt:
    """Return the parser; the one without task lists where there are too many boxes."""
    if sum(map(source.count, ("[ ]", "[x]", "[X]"))) <= TASK_LIMIT:
        return _DRAFT if draft else _FINISHED
    return _DRAFT_WITHOUT_TASKS if draft else _FINISHED_WITHOUT_TASKS


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


def _limited_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a table whose header still fits in; `env` counts the cells of all tables before."""
    if not table(state, start, end, True):
        return False
    rule = state.src[state.bMarks[start + 1] : state.eMarks[start + 1]]
    columns, before = sum(map(bool, map(str.strip, rule.split("|")))), cells_in(state.env)
    if silent or before + columns > CELL_LIMIT:
        return before + columns <= CELL_LIMIT
    state.env["table"] = start, columns
    table(state, start, end, False)
    state.env["cells"] = before + columns * (state.line - start - 1)
    return True


def _ends_table(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    """Tell whether a table ends before a row: it has no more cells than characters, all tables no more than allowed."""
    if state.parentType != "table":
        return False
    start, columns = state.env["table"]
    cells: int = columns * (line - start)
    written: int = state.eMarks[line] - state.bMarks[start]
    return cells > written or cells_in(state.env) + cells > CELL_LIMIT


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
    parser.block.ruler.at("table", _limited_table, {"alt": ["paragraph", "reference"]})
    parser.block.ruler.before("table", "ends_table", _ends_table, {"alt": ["blockquote"]})
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
