"""New rows of documents, versions and staged files by binary COPY.

Measured with documents of 10 KB: as values of an INSERT their bytes are spelled out by the client and read again by the
server's parser, which costs more than storing them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.db import connection, models
from psycopg.types.json import Jsonb

_TYPES = {
    models.UUIDField: "uuid",
    models.CharField: "varchar",
    models.TextField: "text",
    models.BinaryField: "bytea",
    models.PositiveIntegerField: "int4",
    models.BigIntegerField: "int8",
    models.BooleanField: "bool",
    models.JSONField: "jsonb",
    models.DateTimeField: "timestamptz",
}


def copy_new(rows: Sequence[models.Model]) -> None:
    """Insert rows of one model; the database gives the numbers of those whose key it makes. Caller's transaction."""
    if not rows:
        return
    model = type(rows[0])
    fields = [field for field in model._meta.concrete_fields if not isinstance(field, models.AutoField)]
    types = [_type(field) for field in fields]
    json_places = {place for place, name in enumerate(types) if name == "jsonb"}
    names = [field.attname for field in fields]
    quoted = ", ".join(connection.ops.quote_name(str(field.column)) for field in fields)
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {model._meta.db_table} ({quoted}) FROM STDIN (FORMAT BINARY)") as copy,
    ):
        copy.set_types(types)
        for row in rows:
            values: list[Any] = [getattr(row, name) for name in names]
            for place in json_places:
                values[place] = Jsonb(values[place], dumps=_dumps)
            copy.write_row(values)


def _type(field: models.Field[Any, Any]) -> str:
    if isinstance(field, models.ForeignKey):
        field = field.target_field
    if isinstance(field, models.AutoField):
        return str(field.rel_db_type(connection)).replace("integer", "int4").replace("bigint", "int8")
    for kind, name in _TYPES.items():
        if isinstance(field, kind):
            return name
    raise TypeError(f"no type for {field}")


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
