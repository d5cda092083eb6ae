"""Where a page has what it shows by reference: attachments, and whole results of tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Sources:
    """The addresses for the readers of a page, below `base`; without it there are none.

    `names` are those of the attachments; `holder` is what has the results of tools, as in `conversations/<id>`.
    """

    base: str = ""
    holder: str = ""
    names: Mapping[UUID, str] = field(default_factory=dict)

    def attachment(self, id: UUID) -> str:
        return f"{self.base}/attachments/{id}" if self.base else ""

    def result(self, call_id: str) -> str:
        return f"{self.base}/{self.holder}/tool-results/{quote(call_id, safe='')}" if self.base else ""

    def of_run(self, execution_id: str) -> Sources:
        return replace(self, holder=f"executions/{execution_id}")
