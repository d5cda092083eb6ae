"""The site: settings, addresses and the ASGI application."""

__version__ = "0.1.0"
