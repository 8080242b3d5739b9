"""Cron rules and the tasks that they create."""
