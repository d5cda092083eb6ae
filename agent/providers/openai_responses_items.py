"""The output items of a Responses stream while they grow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.providers.calls import MAX_NAME, FinishedCall, arguments_text, is_object, kept_id, settled_arguments
from agent.runtime.values import clean_text, freeze_object

MAX_ITEMS = 4096


@dataclass(slots=True)
class OutputItem:
    """One item; `texts` are the numbers of the text blocks that it became, `opaque` is what goes back as it came."""

    type: str = ""
    done: bool = False
    cut: bool = False
    phase: str = ""
    texts: list[int] = field(default_factory=list)
    said: str = ""  # which kind of event spoke for it first
    part: Any = None
    provider_id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    call: int | None = None
    opaque: dict[str, Any] | None = None

    def describe(self, item: Mapping[str, Any]) -> int:
        """Take in what an item says about itself; returns how much more of it is kept."""
        before = self._described
        self.type = text_of(item, "type")[:MAX_NAME] or self.type
        self.phase = text_of(item, "phase")[:MAX_NAME] or self.phase
        self.provider_id = kept_id(item.get("call_id")) or self.provider_id
        self.name = text_of(item, "name")[:MAX_NAME] or self.name
        return self._described - before

    @property
    def _described(self) -> int:
        return len(self.type) + len(self.phase) + len(self.provider_id) + len(self.name)

    def settle(self, arguments: Any) -> int:
        """Replace the pieces of the arguments by all of them, where they came; returns how much longer they got."""
        if arguments is None or arguments == "":
            return 0
        whole = arguments_text(arguments)
        more = len(whole) - sum(map(len, self.pieces))
        self.pieces = [whole]
        return more

    def finished_call(self, *, limit_hit: bool) -> FinishedCall | None:
        """Return the call as it came, None where it was cut off."""
        text = "".join(self.pieces)
        if limit_hit and (self.cut or not self.done or not is_object(settled_arguments(text))):
            return None
        return FinishedCall(clean_text(self.provider_id), clean_text(self.name), clean_text(settled_arguments(text)))


class OutputItems:
    """The items of one answer, by their place; some servers say the place, others only an id."""

    __slots__ = ("_ids", "_items")

    def __init__(self) -> None:
        self._items: dict[int, OutputItem] = {}
        self._ids: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[OutputItem]:
        return (self._items[place] for place in sorted(self._items))

    def find(self, event: Mapping[str, Any]) -> tuple[int, OutputItem]:
        """Return the place and the item that an event is about."""
        item = event.get("item")
        item_id = kept_id(event.get("item_id")) or (kept_id(item.get("id")) if isinstance(item, dict) else "")
        place = event.get("output_index")
        if type(place) is not int:
            place = self._ids.get(item_id)
        if place is None:
            new = item_id or not self._items
            place = max(self._items, default=-1) + 1 if new else max(self._items)
        if item_id and len(self._ids) < MAX_ITEMS:  # there are servers with a new id in each event
            self._ids.setdefault(item_id, place)
        return place, self._items.setdefault(place, OutputItem())

    def unseen(self, output: Any) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield those of the items of the whole answer that have not been said to be done."""
        for place, item in enumerate(output if isinstance(output, list) else ()):
            if isinstance(item, dict):
                known = self._ids.get(kept_id(item.get("id")), place)
                if known not in self._items or not self._items[known].done:
                    yield known, item

    def skeleton(self) -> list[dict[str, Any]]:
        """Return what goes back of the answer beside what all can see, nothing where that is all there is."""
        entries: list[dict[str, Any]] = []
        for item in self:
            if item.opaque is not None:
                entries.append(item.opaque)
            elif item.texts:
                entries.append({"text": item.texts, **({"phase": item.phase} if item.phase else {})})
            elif item.call is not None:
                entries.append({"call": item.call})
        return entries if any("type" in entry or "phase" in entry for entry in entries) else []


def text_of(value: Mapping[str, Any], name: str) -> str:
    """Return a member that is a text with something in it."""
    text = value.get(name)
    return text if isinstance(text, str) and text.strip() else ""


def texts_of(parts: Any, name: str = "text") -> list[str]:
    """Return the texts of a list of content parts."""
    found = (part.get(name) for part in parts if isinstance(part, dict)) if isinstance(parts, list) else ()
    return [text for text in found if isinstance(text, str) and text]


def opaque_form(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return an item as it goes back, None where it need not: without encrypted content it is but a name (B43, B47)."""
    encrypted = item.get("encrypted_content")
    if not isinstance(encrypted, str) or not encrypted or not text_of(item, "type"):
        return None
    if item["type"] != "reasoning":
        return freeze_object(item)
    id = {"id": item["id"]} if text_of(item, "id") else {}
    summary = [{"type": "summary_text", "text": text} for text in texts_of(item.get("summary"))]
    return freeze_object({"type": "reasoning", **id, "summary": summary, "encrypted_content": encrypted})
