from conversations.api.routes import api

__all__ = ["api"]
