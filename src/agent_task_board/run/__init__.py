"""``atb run``: claim tasks, run a command for each, renew its lease, and end the attempt with what the command says."""
