"""Columns and constraints that many tables have."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, CheckConstraint, Column, Integer, MetaData, text

from recrawl.model.work import PageState, TaskState

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False, server_default=text("false"))


def count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text("0"))


def one_of(column: str, values: type[PageState] | type[TaskState]) -> CheckConstraint:
    allowed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({allowed})", name=column)


def where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}
