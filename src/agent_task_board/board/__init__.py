"""The lifecycle: every transition of a task, every read, and the history."""
