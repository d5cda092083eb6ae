"""What the log says in the words of our own settings."""

from __future__ import annotations

import logging


class NameTheSetting(logging.Filter):
    """Names PAR_ORIGINS where Django, of an unknown Host, names a setting that operators do not have."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = str(record.msg).replace("ALLOWED_HOSTS", "PAR_ORIGINS (its host names are the ones answered)")
        return True
