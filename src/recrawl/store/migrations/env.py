"""Alembic's entry: migrations run on the connection that `recrawl.store.migrate` hands over."""

from alembic import context

from recrawl.store.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=connection.dialect.name == "sqlite")
context.run_migrations()
