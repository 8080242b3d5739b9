"""The output of the command that worked on an attempt: its end, for whoever wants to know what happened."""

from __future__ import annotations

from .. import inputs
from .predicates import HELD
from .refusals import lease_lost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .core import Core, Transaction

LIMIT = 65_536
"""Characters that are kept of the output of one attempt: the last ones."""


def keep_output(core: Core, task: str, token_hash: str, output: str) -> None:
    """Do what ``Board.keep_output`` promises."""
    text = inputs.text(output, "output", inputs.JSON_BYTES)[-LIMIT:]
    with core.write() as tx:
        row = tx.find(task)
        kept = tx.execute(
            f"""
            INSERT INTO attempt_output (task_seq, number, text)
            SELECT task_seq, number, :text FROM attempt
             WHERE task_seq = :seq
               AND iif(outcome IS NULL, EXISTS (SELECT 1 FROM task WHERE seq = :seq AND {HELD}),
                       same_secret(token_hash, :token_hash))
             ORDER BY number DESC LIMIT 1
                ON CONFLICT DO UPDATE SET text = excluded.text
            RETURNING number
            """,
            {"seq": row["seq"], "now": tx.now, "token_hash": token_hash, "text": text},
        ).fetchall()
        if not kept:
            raise lease_lost(row, tx.now)


def outputs(tx: Transaction, seq: int) -> dict[int, str]:
    """Return the output that is kept of each attempt of a task, by number."""
    found = tx.execute("SELECT number, text FROM attempt_output WHERE task_seq = ?", (seq,))
    return {row["number"]: row["text"] for row in found.fetchall()}
