"""People."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models.functions import Lower


class User(AbstractUser):
    """A person; the e-mail address is the name to sign in with and is kept in lower case."""

    email = models.EmailField("e-mail address", unique=True)

    class Meta(AbstractUser.Meta):
        constraints = [
            # unique=True alone admits JOE@ beside joe@ when a row is written past `save`.
            models.UniqueConstraint(Lower("email"), name="user_email_lower"),
        ]

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.email = self.email.lower()
        super().save(*args, **kwargs)
