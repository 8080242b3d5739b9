"""Notifications of changes: the outbox, commands and webhooks."""
