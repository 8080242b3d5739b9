-- For boards with months of work: an archive, schedules, an outbox, and indexes that keep lists fast.
-- Lists and the board read these indexes in the order in which tasks were added.
CREATE INDEX task_unfinished ON task (seq) WHERE finished_at IS NULL;

ALTER TABLE task ADD COLUMN archived_at TEXT  -- lists, board and claims skip the task
  CONSTRAINT archived_is_final CHECK (archived_at IS NULL OR finished_at IS NOT NULL);

CREATE INDEX task_kept ON task (seq) WHERE archived_at IS NULL;
CREATE INDEX task_review ON task (seq) WHERE status = 'review';

DROP INDEX task_finished;
CREATE INDEX task_finished ON task (finished_at, seq) WHERE finished_at IS NOT NULL AND archived_at IS NULL;
CREATE INDEX task_archived ON task (finished_at, seq) WHERE archived_at IS NOT NULL;

DROP TRIGGER tally_on_insert;
DROP TRIGGER tally_on_update;

-- Archived tasks count as archived, whatever their status.
CREATE TRIGGER tally_on_insert AFTER INSERT ON task
BEGIN
  INSERT INTO tally (queue, status, tasks) VALUES (NEW.queue, iif(NEW.archived_at IS NULL, NEW.status, 'archived'), 1)
    ON CONFLICT (queue, status) DO UPDATE SET tasks = tasks + 1;
END;

CREATE TRIGGER tally_on_update AFTER UPDATE OF queue, status, archived_at ON task
  WHEN OLD.queue <> NEW.queue OR OLD.status <> NEW.status OR (OLD.archived_at IS NULL) <> (NEW.archived_at IS NULL)
BEGIN
  UPDATE tally SET tasks = tasks - 1
   WHERE queue = OLD.queue AND status = iif(OLD.archived_at IS NULL, OLD.status, 'archived');
  INSERT INTO tally (queue, status, tasks) VALUES (NEW.queue, iif(NEW.archived_at IS NULL, NEW.status, 'archived'), 1)
    ON CONFLICT (queue, status) DO UPDATE SET tasks = tasks + 1;
END;

-- A cron rule with the template of a task. Names are compared by casefold().
CREATE TABLE schedule (
  id         TEXT PRIMARY KEY,      -- ULID; a new schedule with an old name has a new id
  key        TEXT NOT NULL UNIQUE,  -- casefold() of the name
  name       TEXT NOT NULL,
  cron       TEXT NOT NULL,
  zone       TEXT NOT NULL,         -- IANA name
  task       TEXT NOT NULL,         -- the template: a JSON object with fields of a task
  catch_up   INTEGER,               -- tasks that one tick creates at most; null: as configured
  paused_at  TEXT,                  -- occurrences from then until it is resumed are dropped
  next_at    TEXT,                  -- the next occurrence without a task; null if there are no more
  last_at    TEXT,                  -- the latest occurrence with a task
  made       INTEGER NOT NULL DEFAULT 0,
  version    INTEGER NOT NULL DEFAULT 1,
  created_by TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  CONSTRAINT next_comes_after_last CHECK (next_at > last_at),
  CONSTRAINT catch_up_in_range CHECK (catch_up BETWEEN 1 AND 1000)
) STRICT, WITHOUT ROWID;

CREATE INDEX schedule_due ON schedule (next_at) WHERE next_at IS NOT NULL;

UPDATE task SET schedule_id = NULL, occurrence_at = NULL
 WHERE schedule_id IS NOT NULL
   AND seq NOT IN (SELECT min(seq) FROM task WHERE schedule_id IS NOT NULL GROUP BY schedule_id, occurrence_at);

-- An occurrence never gets a second task.
CREATE UNIQUE INDEX task_occurrence ON task (schedule_id, occurrence_at) WHERE schedule_id IS NOT NULL;

-- Notifications for hooks, queued in the transaction of the change that they report.
CREATE TABLE outbox (
  id         TEXT PRIMARY KEY,      -- 32 hexadecimal digits; lets a hook recognize a repeated delivery
  event_seq  INTEGER NOT NULL REFERENCES event (seq),
  target     TEXT NOT NULL,
  told       TEXT NOT NULL,         -- reason: done, review, failed, cancelled, expired, commented
  status     TEXT NOT NULL DEFAULT 'pending',
  attempts   INTEGER NOT NULL DEFAULT 0,
  due_at     TEXT,                  -- of the next attempt; during an attempt, when it counts as lost
  error      TEXT,                  -- of the latest attempt that failed
  created_at TEXT NOT NULL,
  ended_at   TEXT,
  CONSTRAINT target_is_known CHECK (target IN ('command', 'webhook')),
  CONSTRAINT delivery_status_is_known CHECK (status IN ('pending', 'delivered', 'failed')),
  CONSTRAINT pending_is_due CHECK ((status = 'pending') = (due_at IS NOT NULL)),
  CONSTRAINT pending_has_no_end CHECK ((status = 'pending') = (ended_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX outbox_due ON outbox (due_at) WHERE status = 'pending';
CREATE INDEX outbox_ended ON outbox (ended_at) WHERE status <> 'pending';
CREATE INDEX outbox_event ON outbox (event_seq);
