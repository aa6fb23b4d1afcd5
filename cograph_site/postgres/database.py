"""The database inside the server: made once, and checked whichever server it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import sql

from cograph_site.postgres import PostgresError
from cograph_site.postgres.home import DATABASE, OWNER_ROLE, ROLE, ServerHome

OLDEST_SERVER = 160000
OLDEST_VECTOR = (0, 8)


def make_database(home: ServerHome, *, may_create_databases: bool = False) -> None:
    """Make role, database and extensions in an embedded server, once.

    SECURITY: the application's role owns its database and nothing else. A superuser could run programs of the operating
    system from SQL. The extensions go into template1 too, so that a test database has them.
    """
    rights = sql.SQL("LOGIN CREATEDB" if may_create_databases else "LOGIN NOCREATEDB")
    with psycopg.connect(home.url(role=OWNER_ROLE, database="template1"), autocommit=True) as connection:
        _make_extensions(connection)
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [ROLE]).fetchone():
            connection.execute(sql.SQL("CREATE ROLE {} {}").format(sql.Identifier(ROLE), rights))
    with psycopg.connect(home.url(role=OWNER_ROLE, database="postgres"), autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
            statement = sql.SQL("CREATE DATABASE {} OWNER {}")
            connection.execute(statement.format(sql.Identifier(DATABASE), sql.Identifier(ROLE)))
    with psycopg.connect(home.url(role=OWNER_ROLE), autocommit=True) as connection:
        _make_extensions(connection)


def _make_extensions(connection: psycopg.Connection) -> None:
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    row = connection.execute(
        "SELECT installed_version, default_version FROM pg_available_extensions WHERE name = 'vector'"
    ).fetchone()
    if row and _version(row[0]) < _version(row[1]):  # the other way round there is no path, and no need
        connection.execute("ALTER EXTENSION vector UPDATE")
    if connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'pg_trgm'").fetchone():
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")


def check_database(address: Mapping[str, Any]) -> str:
    """Check that a database is usable, install the vector extension when it may, and describe it in a few words.

    `address` is an entry of Django's DATABASES. Raises PostgresError with a sentence for the operator: unreachable,
    older than 16, vector missing or below 0.8.
    """
    try:
        connection = psycopg.connect(
            host=address["HOST"],
            port=address["PORT"] or None,
            user=address["USER"],
            password=address["PASSWORD"] or None,
            dbname=address["NAME"],
            autocommit=True,
            **{"connect_timeout": 10, **address.get("OPTIONS", {})},  # sslmode and its kin
        )
    except psycopg.OperationalError as error:
        raise PostgresError(f"the database of DATABASE_URL cannot be reached: {_first_line(error)}") from None
    with connection:
        version = connection.info.server_version
        if version < OLDEST_SERVER:
            raise PostgresError(f"DATABASE_URL is PostgreSQL {version // 10000}; Cograph needs 16 or newer")
        row = connection.execute(
            "SELECT default_version, installed_version FROM pg_available_extensions WHERE name = 'vector'"
        ).fetchone()
        if row is None:
            raise PostgresError(
                "the server of DATABASE_URL has no extension vector (pgvector); Cograph needs 0.8 or newer"
            )
        available, installed = row
        if installed is None:
            try:
                connection.execute("CREATE EXTENSION vector")
            except psycopg.errors.InsufficientPrivilege:
                raise PostgresError(
                    "the role of DATABASE_URL may not install the extension vector: as superuser, run "
                    "CREATE EXTENSION vector in that database"
                ) from None
            installed = available
        if _version(installed) < OLDEST_VECTOR:
            raise PostgresError(
                f"the database of DATABASE_URL has vector {installed}; Cograph needs 0.8 or newer "
                "(ALTER EXTENSION vector UPDATE)"
            )
    return f"PostgreSQL {version // 10000}.{version % 10000}, vector {installed}"


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
