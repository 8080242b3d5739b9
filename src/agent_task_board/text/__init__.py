"""Text for agents: compact lists and tasks, and the briefing."""
