"""The board's file: connections, transactions, schema and migrations, the line of writers."""
