"""The version, alone in a file so that reading it costs nothing."""

__version__ = "0.1.0"
