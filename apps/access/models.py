from __future__ import annotations

from django.contrib.auth.models import AbstractUser


class User(AbstractUser):
    """A person or service that may sign in."""
