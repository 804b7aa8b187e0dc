-- Version 2: claims in one statement.
--
-- Where a database is a journey away, the rules that columns can tell are judged there, and the
-- record is not sent to and fro. Rows of version 1 say FALSE, and are claimed the longer way.

-- The columns say all that a claim must know, and its audit line can hold no secret of the job.
ALTER TABLE jobs ADD COLUMN at_once BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE jobs ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;
-- A claim that came after the body, until the record is written again: who, when, on which lease.
ALTER TABLE jobs ADD COLUMN claim BYTEA;
