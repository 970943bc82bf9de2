"""The durable record of a run: what was meant, written and synced before it is done.

It holds the plan, how the cluster was, intents and backups, and never the truth: that is seen.
"""

from replant.execute.journal.model import (
    FORMAT,
    Entry,
    Header,
    Journal,
    Journals,
    Mark,
    Run,
    State,
    Summary,
)

__all__ = ["FORMAT", "Entry", "Header", "Journal", "Journals", "Mark", "Run", "State", "Summary"]
