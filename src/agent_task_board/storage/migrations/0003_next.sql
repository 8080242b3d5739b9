ALTER TABLE board ADD COLUMN board_id TEXT  -- 16 hexadecimal digits, new for a board that is created, migrated or restored
  CONSTRAINT board_id_is_hexadecimal CHECK (length(board_id) = 16 AND board_id NOT GLOB '*[^0-9a-f]*');

UPDATE board SET board_id = lower(hex(randomblob(8)));

ALTER TABLE task ADD COLUMN stuck INTEGER NOT NULL DEFAULT 0
  CONSTRAINT stuck_while_queued CHECK (stuck = 0 OR (stuck = 1 AND status = 'queued'));

-- Stuck tasks: queued ones that wait, directly or through others, for a task that failed or was cancelled.
-- `board/stuck.py` sets the flag in the transaction of the change.
CREATE INDEX task_stuck ON task (seq) WHERE stuck = 1;

UPDATE task SET stuck = 1
 WHERE seq IN (
       WITH RECURSIVE behind (seq) AS (
         SELECT task_seq
           FROM dependency JOIN task AS other ON other.seq = depends_on_seq JOIN task ON task.seq = task_seq
          WHERE other.status IN ('failed', 'cancelled') AND task.status = 'queued'
          UNION
         SELECT task_seq
           FROM behind JOIN dependency ON depends_on_seq = behind.seq JOIN task ON task.seq = task_seq
          WHERE task.status = 'queued')
       SELECT seq FROM behind);

ALTER TABLE event ADD COLUMN imported INTEGER NOT NULL DEFAULT 0  -- copied by an import: nobody here saw who caused it
  CONSTRAINT imported_is_boolean CHECK (imported IN (0, 1));

DROP TRIGGER event_is_never_changed;

UPDATE event SET imported = 1
 WHERE seq < (SELECT max(import.seq) FROM event AS import
               WHERE import.task_seq = event.task_seq AND import.kind = 'imported');

CREATE TRIGGER event_is_never_changed BEFORE UPDATE ON event
BEGIN
  SELECT raise(ABORT, 'events are append-only');
END;

CREATE TABLE attempt_output (  -- the end of what the command of an attempt wrote
  task_seq INTEGER NOT NULL,
  number   INTEGER NOT NULL,
  text     TEXT NOT NULL,
  PRIMARY KEY (task_seq, number),
  FOREIGN KEY (task_seq, number) REFERENCES attempt (task_seq, number),
  CONSTRAINT output_is_limited CHECK (length(text) BETWEEN 1 AND 65536)
) STRICT, WITHOUT ROWID;

-- Tasks that an agent has released: until then, its own claims take their equals first. Rows are removed once that passed.
CREATE TABLE released (
  agent    TEXT NOT NULL,
  task_seq INTEGER NOT NULL REFERENCES task (seq),
  until    TEXT NOT NULL,
  PRIMARY KEY (task_seq, agent)
) STRICT, WITHOUT ROWID;

CREATE INDEX released_until ON released (agent, until);
CREATE INDEX released_age ON released (until);

ALTER TABLE task ADD COLUMN max_runtime INTEGER  -- seconds that the command of an attempt may take; `atb run` ends it
  CONSTRAINT max_runtime_is_limited CHECK (max_runtime BETWEEN 1 AND 604800);

ALTER TABLE outbox ADD COLUMN process TEXT  -- what an attempt has started: boot id, process id, start time
  CONSTRAINT process_while_pending CHECK (process IS NULL OR status = 'pending');

CREATE INDEX outbox_process ON outbox (id) WHERE process IS NOT NULL;

-- People as first written. Names of agents and people are compared by their key: NFC, then casefold(), then NFC.
CREATE TABLE actor (
  key  TEXT PRIMARY KEY,
  name TEXT NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE board ADD COLUMN last_event INTEGER NOT NULL DEFAULT 0;
ALTER TABLE board ADD COLUMN last_event_revision INTEGER NOT NULL DEFAULT 0;

UPDATE board SET last_event = (SELECT coalesce(max(seq), 0) FROM event), last_event_revision = revision;

-- The number of the newest event and the revision at that moment, so that `atb doctor` notices the loss of either.
CREATE TRIGGER event_is_counted AFTER INSERT ON event
BEGIN
  UPDATE board SET last_event = NEW.seq, last_event_revision = revision;
END;

-- Dependencies of imported issues on issues that were not imported yet. A row becomes a dependency when a task with the
-- id is imported, and is removed then.
CREATE TABLE awaited_dependency (
  id       TEXT NOT NULL,     -- that the other task will have
  task_seq INTEGER NOT NULL REFERENCES task (seq),
  name     TEXT NOT NULL,     -- what the tracker calls the other issue
  PRIMARY KEY (id, task_seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX awaited_dependency_task ON awaited_dependency (task_seq);

-- Tasks whose latest texts are not in the full-text index yet: all of them where SQLite has no FTS5. A program that has
-- it indexes what it changes in the same transaction, and some of the others; `atb tick` indexes the rest.
CREATE TABLE unindexed (
  task_seq INTEGER PRIMARY KEY REFERENCES task (seq)
) STRICT;

INSERT INTO unindexed (task_seq) SELECT seq FROM task;

CREATE TRIGGER unindexed_on_insert AFTER INSERT ON task
BEGIN
  INSERT INTO unindexed (task_seq) VALUES (NEW.seq) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER unindexed_on_update AFTER UPDATE OF title, tags, body, result, error ON task
  WHEN OLD.title <> NEW.title OR OLD.tags <> NEW.tags OR OLD.body <> NEW.body
    OR OLD.result IS NOT NEW.result OR OLD.error IS NOT NEW.error
BEGIN
  INSERT INTO unindexed (task_seq) VALUES (NEW.seq) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER unindexed_on_comment AFTER INSERT ON event WHEN NEW.kind = 'commented'
BEGIN
  INSERT INTO unindexed (task_seq) VALUES (NEW.task_seq) ON CONFLICT DO NOTHING;
END;

-- Finds the comments of a task, however many other events there are.
CREATE INDEX event_comment ON event (task_seq, seq) WHERE kind = 'commented';
