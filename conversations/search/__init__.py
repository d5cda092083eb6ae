"""Full text search over conversations: a person's own or, for staff who may, everybody's.

`words` cuts texts and queries, `query` reads what was typed, `index` is the interface of both databases (`sqlite`,
`postgresql`), `entries` fills it inside the transactions that save, `finding` asks it, and `snippets` shows why.
"""

from conversations.search.entries import index_messages, index_revisions, index_title, rebuild, search_index
from conversations.search.finding import Found, Hit, conversations_of_all, matching_conversations, search
from conversations.search.index import Filters
from conversations.search.query import Query
from conversations.search.snippets import Piece

__all__ = [
    "Filters",
    "Found",
    "Hit",
    "Piece",
    "Query",
    "conversations_of_all",
    "index_messages",
    "index_revisions",
    "index_title",
    "matching_conversations",
    "rebuild",
    "search",
    "search_index",
]
