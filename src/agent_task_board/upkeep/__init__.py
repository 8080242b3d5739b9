"""Backup, restore and the doctor."""
