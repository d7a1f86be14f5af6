"""The only room that knows SQL: tables, migrations, one module per verb."""
