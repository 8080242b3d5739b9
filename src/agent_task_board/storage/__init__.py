"""The board's file: connections, transactions, schema, migrations, and the fair queue of writers."""
