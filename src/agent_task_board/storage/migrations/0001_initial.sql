-- One board. Every instant is text of fixed width in UTC (2026-11-30T06:14:05.123+00:00), so that text order is
-- time order; every length of time is an integer number of milliseconds. Rows of task are never deleted.

CREATE TABLE board (
  id       INTEGER PRIMARY KEY,
  revision INTEGER NOT NULL DEFAULT 0,  -- +1 at every write to any task
  CONSTRAINT board_is_one_row CHECK (id = 1)
) STRICT;

INSERT INTO board (id) VALUES (1);

-- Agents that claimed a task or were assigned one. Names are compared by casefold() and shown as first written.
CREATE TABLE agent (
  key           TEXT PRIMARY KEY,       -- casefold() of the name
  name          TEXT NOT NULL UNIQUE,
  first_seen_at TEXT NOT NULL,
  last_seen_at  TEXT,                   -- of the latest call under a lease; null: never
  completed     INTEGER NOT NULL DEFAULT 0,  -- attempts by outcome; kept by triggers
  failed        INTEGER NOT NULL DEFAULT 0,
  expired       INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE task (
  seq               INTEGER PRIMARY KEY,  -- insertion order; decides between tasks of equal priority
  id                TEXT NOT NULL,        -- ULID
  status            TEXT NOT NULL DEFAULT 'queued',
  queue             TEXT NOT NULL DEFAULT 'default',
  priority          INTEGER NOT NULL DEFAULT 0,
  assignee          TEXT,
  open_dependencies INTEGER NOT NULL DEFAULT 0,  -- dependencies that are not done; kept by triggers
  delayed           INTEGER NOT NULL DEFAULT 0,  -- set to 0 after not_before has passed
  not_before        TEXT,
  attempts          INTEGER NOT NULL DEFAULT 0,  -- claims since added or reset
  max_attempts      INTEGER NOT NULL,
  fence             INTEGER NOT NULL DEFAULT 0,
  version           INTEGER NOT NULL DEFAULT 1,
  claimed_by        TEXT,
  claimed_at        TEXT,
  lease_token_hash  TEXT,                 -- SHA-256 of the token in hex; the token itself is never stored
  lease_expires_at  TEXT,
  lease_length      INTEGER,              -- last requested on this claim
  progress          INTEGER,
  needs_approval    INTEGER NOT NULL DEFAULT 0,
  due_at            TEXT,
  dedupe_key        TEXT,
  schedule_id       TEXT,
  occurrence_at     TEXT,
  created_by        TEXT NOT NULL,
  created_at        TEXT NOT NULL,
  updated_at        TEXT NOT NULL,
  finished_at       TEXT,
  title             TEXT NOT NULL,
  tags              TEXT NOT NULL DEFAULT '[]',
  artifacts         TEXT NOT NULL DEFAULT '[]',
  error             TEXT,                 -- why the latest failed or expired attempt ended; null after a complete
  params            TEXT NOT NULL DEFAULT '{}',
  result            TEXT,
  body              TEXT NOT NULL DEFAULT '',
  CONSTRAINT status_is_known CHECK (
    status IN ('queued', 'claimed', 'running', 'review', 'waiting', 'done', 'failed', 'cancelled')),
  CONSTRAINT lease_while_claimed_or_running CHECK (
    (status IN ('claimed', 'running')) = (lease_token_hash IS NOT NULL)
    AND (lease_token_hash IS NULL) = (lease_expires_at IS NULL)
    AND (lease_token_hash IS NULL) = (lease_length IS NULL)),
  CONSTRAINT holder_while_claimed_or_running CHECK (
    status NOT IN ('claimed', 'running') OR claimed_by IS NOT NULL),
  CONSTRAINT no_holder_while_queued CHECK (status <> 'queued' OR claimed_by IS NULL),
  CONSTRAINT claimed_by_goes_with_claimed_at CHECK ((claimed_by IS NULL) = (claimed_at IS NULL)),
  CONSTRAINT finished_when_final CHECK (
    (status IN ('done', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
  CONSTRAINT attempts_within_budget CHECK (
    attempts BETWEEN 0 AND max_attempts AND max_attempts BETWEEN 1 AND 1000),
  CONSTRAINT queued_has_an_attempt_left CHECK (status <> 'queued' OR attempts < max_attempts),
  CONSTRAINT no_progress_while_queued CHECK (status <> 'queued' OR progress IS NULL),
  CONSTRAINT progress_is_a_percentage CHECK (progress BETWEEN 0 AND 100),
  CONSTRAINT delayed_has_not_before CHECK (
    delayed IN (0, 1) AND (delayed = 0 OR not_before IS NOT NULL)),
  CONSTRAINT open_dependencies_not_negative CHECK (open_dependencies >= 0),
  CONSTRAINT priority_in_range CHECK (priority BETWEEN -1000000 AND 1000000),
  CONSTRAINT needs_approval_is_boolean CHECK (needs_approval IN (0, 1)),
  CONSTRAINT id_is_a_ulid CHECK (length(id) = 26),
  CONSTRAINT title_length CHECK (length(title) BETWEEN 1 AND 500),
  CONSTRAINT nobody_is_called_none CHECK (lower(assignee) <> 'none' AND lower(claimed_by) <> 'none'),
  CONSTRAINT occurrence_goes_with_schedule CHECK ((schedule_id IS NULL) = (occurrence_at IS NULL))
) STRICT;

CREATE UNIQUE INDEX task_id ON task (id);

-- A task can be named by the end of its id, at least four characters.
CREATE INDEX task_ending ON task (substr(id, -4));

-- At most one unfinished task holds a dedupe key.
CREATE UNIQUE INDEX task_dedupe ON task (dedupe_key)
  WHERE dedupe_key IS NOT NULL AND status NOT IN ('done', 'failed', 'cancelled');

-- The indexes that a claim reads. SQLite uses a partial index only in a query that repeats its WHERE terms.
CREATE INDEX task_ready ON task (assignee, priority DESC, seq)
  WHERE status = 'queued' AND open_dependencies = 0 AND delayed = 0;
CREATE INDEX task_ready_in_queue ON task (queue, assignee, priority DESC, seq)
  WHERE status = 'queued' AND open_dependencies = 0 AND delayed = 0;
CREATE INDEX task_delayed ON task (not_before, priority, queue, assignee, open_dependencies)
  WHERE status = 'queued' AND delayed = 1;
CREATE INDEX task_blocked ON task (queue)
  WHERE status = 'queued' AND open_dependencies > 0;
CREATE INDEX task_leased ON task (lease_expires_at)
  WHERE status IN ('claimed', 'running');
CREATE INDEX task_finished ON task (finished_at)
  WHERE finished_at IS NOT NULL;

CREATE TRIGGER task_is_never_deleted BEFORE DELETE ON task
BEGIN
  SELECT raise(ABORT, 'tasks are never deleted');
END;

CREATE TRIGGER fence_is_never_lowered BEFORE UPDATE OF fence ON task WHEN NEW.fence < OLD.fence
BEGIN
  SELECT raise(ABORT, 'a fence is never lowered');
END;

CREATE TABLE dependency (
  task_seq       INTEGER NOT NULL REFERENCES task (seq),
  depends_on_seq INTEGER NOT NULL REFERENCES task (seq),
  position       INTEGER NOT NULL,  -- order in which the task's dependencies were added
  PRIMARY KEY (task_seq, depends_on_seq),
  CONSTRAINT nothing_waits_for_itself CHECK (task_seq <> depends_on_seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX dependency_dependents ON dependency (depends_on_seq);

CREATE TRIGGER dependency_added AFTER INSERT ON dependency
BEGIN
  UPDATE task
     SET open_dependencies = open_dependencies
         + (SELECT status <> 'done' FROM task WHERE seq = NEW.depends_on_seq)
   WHERE seq = NEW.task_seq;
END;

CREATE TRIGGER dependency_dropped AFTER DELETE ON dependency
BEGIN
  UPDATE task
     SET open_dependencies = open_dependencies
         - (SELECT status <> 'done' FROM task WHERE seq = OLD.depends_on_seq)
   WHERE seq = OLD.task_seq;
END;

CREATE TRIGGER dependents_unblocked AFTER UPDATE OF status ON task
  WHEN NEW.status = 'done' AND OLD.status <> 'done'
BEGIN
  UPDATE task
     SET open_dependencies = open_dependencies - 1
   WHERE seq IN (SELECT task_seq FROM dependency WHERE depends_on_seq = NEW.seq);
END;

CREATE TRIGGER done_is_final BEFORE UPDATE OF status ON task
  WHEN OLD.status = 'done' AND NEW.status <> 'done'
BEGIN
  SELECT raise(ABORT, 'a done task stays done');
END;

CREATE TRIGGER revision_on_insert AFTER INSERT ON task
BEGIN
  UPDATE board SET revision = revision + 1;
END;

CREATE TRIGGER revision_on_update AFTER UPDATE ON task
BEGIN
  UPDATE board SET revision = revision + 1;
END;

-- The number of tasks by queue and status, so that counting takes the same time on any board.
CREATE TABLE tally (
  queue  TEXT NOT NULL,
  status TEXT NOT NULL,
  tasks  INTEGER NOT NULL,
  PRIMARY KEY (queue, status),
  CONSTRAINT tally_not_negative CHECK (tasks >= 0)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER tally_on_insert AFTER INSERT ON task
BEGIN
  INSERT INTO tally (queue, status, tasks) VALUES (NEW.queue, NEW.status, 1)
    ON CONFLICT (queue, status) DO UPDATE SET tasks = tasks + 1;
END;

CREATE TRIGGER tally_on_update AFTER UPDATE OF queue, status ON task
  WHEN OLD.queue <> NEW.queue OR OLD.status <> NEW.status
BEGIN
  UPDATE tally SET tasks = tasks - 1 WHERE queue = OLD.queue AND status = OLD.status;
  INSERT INTO tally (queue, status, tasks) VALUES (NEW.queue, NEW.status, 1)
    ON CONFLICT (queue, status) DO UPDATE SET tasks = tasks + 1;
END;

-- One attempt: a claim until it ends.
CREATE TABLE attempt (
  task_seq   INTEGER NOT NULL REFERENCES task (seq),
  number     INTEGER NOT NULL,     -- 1, 2, 3 … within the task, never reused
  agent      TEXT NOT NULL REFERENCES agent (name),
  fence      INTEGER NOT NULL,     -- of the latest lease of this attempt
  claimed_at TEXT NOT NULL,
  ended_at   TEXT,
  outcome    TEXT,
  token_hash TEXT,                 -- of the lease that ended it; identifies a repeated call
  result     TEXT,
  error      TEXT,
  note       TEXT,
  PRIMARY KEY (task_seq, number),
  CONSTRAINT outcome_is_known CHECK (
    outcome IN ('completed', 'failed', 'expired', 'released', 'handed_off', 'revoked', 'cancelled')),
  CONSTRAINT outcome_goes_with_end CHECK ((outcome IS NULL) = (ended_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TRIGGER one_open_attempt_per_task BEFORE INSERT ON attempt
  WHEN (SELECT outcome IS NULL FROM attempt WHERE task_seq = NEW.task_seq ORDER BY number DESC LIMIT 1)
BEGIN
  SELECT raise(ABORT, 'the task already has an open attempt');
END;

CREATE TRIGGER outcome_is_final BEFORE UPDATE ON attempt WHEN OLD.outcome IS NOT NULL
BEGIN
  SELECT raise(ABORT, 'an ended attempt is never changed');
END;

CREATE TRIGGER agent_began_attempt AFTER INSERT ON attempt
BEGIN
  UPDATE agent
     SET last_seen_at = iif(NEW.outcome IS NULL, NEW.claimed_at, last_seen_at),
         completed = completed + coalesce(NEW.outcome = 'completed', 0),
         failed = failed + coalesce(NEW.outcome = 'failed', 0),
         expired = expired + coalesce(NEW.outcome = 'expired', 0)
   WHERE name = NEW.agent;
END;

CREATE TRIGGER agent_ended_attempt AFTER UPDATE OF outcome ON attempt
BEGIN
  UPDATE agent
     SET last_seen_at = iif(NEW.outcome IN ('completed', 'failed', 'released', 'handed_off'),
                            NEW.ended_at, last_seen_at),
         completed = completed + (NEW.outcome = 'completed'),
         failed = failed + (NEW.outcome = 'failed'),
         expired = expired + (NEW.outcome = 'expired')
   WHERE name = NEW.agent;
END;

CREATE TRIGGER attempt_is_never_deleted BEFORE DELETE ON attempt
BEGIN
  SELECT raise(ABORT, 'attempts are never deleted');
END;

-- The history. Rows are only added, and seq has no gap.
CREATE TABLE event (
  seq        INTEGER PRIMARY KEY,
  task_seq   INTEGER NOT NULL REFERENCES task (seq),
  kind       TEXT NOT NULL,
  actor      TEXT NOT NULL,
  actor_kind TEXT NOT NULL,
  at         TEXT NOT NULL,
  data       TEXT NOT NULL,
  CONSTRAINT actor_kind_is_known CHECK (actor_kind IN ('agent', 'human', 'system'))
) STRICT;

CREATE INDEX event_of_task ON event (task_seq, seq);

-- Finds the notes for the next agent that claims the task, however many other events there are.
CREATE INDEX event_note ON event (task_seq, seq)
  WHERE kind IN ('released', 'handed_off', 'rejected', 'reassigned', 'cancelled');

CREATE TRIGGER event_is_never_changed BEFORE UPDATE ON event
BEGIN
  SELECT raise(ABORT, 'events are append-only');
END;

-- INSERT OR REPLACE deletes a row without any DELETE trigger.
CREATE TRIGGER event_is_never_replaced BEFORE INSERT ON event
  WHEN EXISTS (SELECT 1 FROM event WHERE seq = NEW.seq)
BEGIN
  SELECT raise(ABORT, 'events are append-only');
END;

CREATE TRIGGER event_is_never_deleted BEFORE DELETE ON event
BEGIN
  SELECT raise(ABORT, 'events are append-only');
END;

-- Calls with a request id: a repeated call gets the same answer again.
CREATE TABLE request (
  id        TEXT PRIMARY KEY,
  arguments TEXT NOT NULL,       -- SHA-256 of the verb and its arguments
  at        TEXT NOT NULL,
  task_seq  INTEGER NOT NULL REFERENCES task (seq),
  attempt   INTEGER,             -- number of the attempt that the call started
  created   INTEGER              -- for add: whether it created the task
) STRICT, WITHOUT ROWID;

CREATE INDEX request_age ON request (at);
