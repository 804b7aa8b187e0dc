-- Every question that a database is asked and every change that is made there, by name.
--
-- A value is `:name`. `{changed}` is the number of the transaction at hand. What differs between
-- the two databases stands in `--only NAME:` lines, as in schema.sql; what is put together from
-- parts (filters, candidates) is in sql_answers.py.

-- name: get
-- The record, without a lock, and a claim that it does not tell of yet.
SELECT body, claim FROM jobs WHERE job_id = :job_id

-- name: get_to_change
-- The record, which nobody else changes until the transaction ends.
SELECT body, claim FROM jobs WHERE job_id = :job_id
--only postgres: FOR UPDATE

-- name: raw_unreadable
SELECT body FROM unreadable WHERE job_id = :job_id

-- name: unreadable
-- All that are listed as such.
SELECT job_id, error FROM unreadable ORDER BY job_id

-- name: status_of
SELECT status FROM jobs WHERE job_id = :job_id

-- name: running_in
SELECT count(*) FROM jobs WHERE status = 'running' AND "group" = :group

-- name: identity
-- What all who work on this registry share.
SELECT realm, secret FROM registry

-- name: queued
-- How many wait, by label.
SELECT agent_session, count(*) FROM jobs WHERE status = 'pending' GROUP BY agent_session

-- name: live_with_key
-- Oldest first; whoever acts on one looks into its record.
SELECT job_id, body FROM jobs
WHERE key = :key AND status IN ('pending', 'running') ORDER BY "order", job_id

-- name: live_twin
SELECT job_id, body FROM jobs
WHERE agent_session = :agent_session AND prompt_sum = :prompt_sum
    AND status IN ('pending', 'running') ORDER BY "order", job_id

-- name: live_writer
SELECT jobs.job_id, body FROM artifacts JOIN jobs ON jobs.job_id = artifacts.job_id
WHERE path = :path AND status IN ('pending', 'running') ORDER BY "order", jobs.job_id

-- name: awaited
-- The jobs that some live job comes after.
SELECT DISTINCT parent FROM parents JOIN jobs ON job_id = child
WHERE status IN ('pending', 'running')

-- name: last_order
SELECT max("order") FROM jobs

-- name: exists
-- The id is taken, by a record, in the archive or in the audit log.
SELECT 1 WHERE EXISTS (SELECT 1 FROM jobs WHERE job_id = :job_id)
    OR EXISTS (SELECT 1 FROM archive WHERE job_id = :job_id)
    OR EXISTS (SELECT 1 FROM unreadable WHERE job_id = :job_id)
    OR EXISTS (SELECT 1 FROM histories WHERE job_id = :job_id)

-- name: change_number
-- The last transaction that everybody can see; 0 in an empty registry.
--only sqlite: SELECT max(coalesce((SELECT max(changed) FROM jobs), 0),
--only sqlite:     coalesce((SELECT max(changed) FROM archive), 0))
--only postgres: SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1

-- name: changed_since
-- The jobs that were written, or taken away, after that transaction.
SELECT job_id, changed FROM jobs WHERE changed > :since
UNION ALL
SELECT job_id, changed FROM archive WHERE changed > :since

-- name: put_job
-- A new job, or one of which everything may have changed.
INSERT INTO jobs (
    job_id, agent, agent_session, "group", priority, "order", created_at, head, not_before, parents,
    timeout_sec, key, prompt_sum, status, attempt, updated_at, started_at, ended_at, reason,
    cancel_requested_at, last_seq, node, revision, inexact, at_once, changed, body)
VALUES (
    :job_id, :agent, :agent_session, :group, :priority, :order, :created_at, :head, :not_before,
    :parents, :timeout_sec, :key, :prompt_sum, :status, :attempt, :updated_at, :started_at, :ended_at, :reason,
    :cancel_requested_at, :last_seq, :node, :revision, :inexact, :at_once, {changed}, :body)
ON CONFLICT (job_id) DO UPDATE SET
    agent = excluded.agent, agent_session = excluded.agent_session, "group" = excluded."group",
    priority = excluded.priority, "order" = excluded."order", created_at = excluded.created_at,
    head = excluded.head, not_before = excluded.not_before, parents = excluded.parents,
    timeout_sec = excluded.timeout_sec,
    key = excluded.key, prompt_sum = excluded.prompt_sum, status = excluded.status,
    attempt = excluded.attempt, updated_at = excluded.updated_at, started_at = excluded.started_at,
    ended_at = excluded.ended_at, reason = excluded.reason,
    cancel_requested_at = excluded.cancel_requested_at, last_seq = excluded.last_seq,
    node = excluded.node, revision = excluded.revision, inexact = excluded.inexact,
    at_once = excluded.at_once, changed = excluded.changed, claim = NULL, body = excluded.body

-- name: new_job
-- Fails where the id is taken.
INSERT INTO jobs (
    job_id, agent, agent_session, "group", priority, "order", created_at, head, not_before, parents,
    timeout_sec, key, prompt_sum, status, attempt, updated_at, started_at, ended_at, reason,
    cancel_requested_at, last_seq, node, revision, inexact, at_once, changed, body)
VALUES (
    :job_id, :agent, :agent_session, :group, :priority, :order, :created_at, :head, :not_before,
    :parents, :timeout_sec, :key, :prompt_sum, :status, :attempt, :updated_at, :started_at, :ended_at, :reason,
    :cancel_requested_at, :last_seq, :node, :revision, :inexact, :at_once, {changed}, :body)

-- name: move_job
-- A claim, a heartbeat, an end: what the job asks for stays, and so do most of the indexes.
UPDATE jobs SET
    status = :status, attempt = :attempt, updated_at = :updated_at, started_at = :started_at,
    ended_at = :ended_at, reason = :reason, cancel_requested_at = :cancel_requested_at,
    last_seq = :last_seq, node = :node, revision = :revision, inexact = :inexact,
    at_once = :at_once, changed = {changed}, claim = NULL, body = :body
WHERE job_id = :job_id

-- name: forget_job
DELETE FROM jobs WHERE job_id = :job_id

-- name: put_prompt
INSERT INTO prompts (job_id, folded, whole) VALUES (:job_id, :folded, :whole)
ON CONFLICT (job_id) DO UPDATE SET folded = excluded.folded, whole = excluded.whole

-- name: forget_prompt
DELETE FROM prompts WHERE job_id = :job_id

-- name: put_parent
INSERT INTO parents (child, parent) VALUES (:job_id, :parent) ON CONFLICT DO NOTHING

-- name: forget_parents
DELETE FROM parents WHERE child = :job_id

-- name: put_artifact
INSERT INTO artifacts (path, job_id) VALUES (:path, :job_id) ON CONFLICT DO NOTHING

-- name: forget_artifacts
DELETE FROM artifacts WHERE job_id = :job_id

-- name: put_unreadable
INSERT INTO unreadable (job_id, error, body) VALUES (:job_id, :error, :body)
ON CONFLICT (job_id) DO UPDATE SET error = excluded.error, body = excluded.body

-- name: gates
SELECT body FROM gates WHERE id = 1

-- name: put_gates
INSERT INTO gates (id, body) VALUES (1, :body) ON CONFLICT (id) DO UPDATE SET body = excluded.body

-- name: paper
SELECT body FROM papers WHERE name = :paper

-- name: papers
SELECT name, body FROM papers ORDER BY name

-- name: put_paper
INSERT INTO papers (name, body) VALUES (:name, :body) ON CONFLICT (name) DO UPDATE SET body = excluded.body

-- name: batches
SELECT DISTINCT batch FROM archive ORDER BY batch

-- name: archived
SELECT job_id, body FROM archive WHERE batch = :batch ORDER BY job_id

-- name: archived_that_can_return
-- An id that lives again keeps its place; what is archived stays where it is.
SELECT job_id, body FROM archive
WHERE batch = :batch AND job_id NOT IN (SELECT job_id FROM jobs) ORDER BY job_id

-- name: put_archived
INSERT INTO archive (batch, job_id, changed, body) VALUES (:batch, :job_id, {changed}, :body)
ON CONFLICT (batch, job_id) DO UPDATE SET changed = excluded.changed, body = excluded.body

-- name: forget_archived
DELETE FROM archive WHERE batch = :batch AND job_id = :job_id

-- name: put_post
INSERT INTO outbox (seq, job_id, body, aside) VALUES (:seq, :job_id, :body, :aside)
ON CONFLICT (seq, job_id) DO UPDATE SET body = excluded.body, aside = excluded.aside

-- name: posts_after
-- Keys only, page by page: with a broker that is down for long most bodies are of no interest.
SELECT seq, job_id FROM outbox
WHERE aside IS NULL AND (seq, job_id) > (:seq, :job_id) ORDER BY seq, job_id LIMIT :limit

-- name: post
SELECT body FROM outbox WHERE seq = :seq AND job_id = :job_id

-- name: all_posts
SELECT seq, job_id, body, aside FROM outbox
WHERE (seq, job_id) > (:seq, :job_id) ORDER BY seq, job_id LIMIT :limit

-- name: holds_post
SELECT 1 FROM outbox WHERE seq = :seq AND job_id = :job_id

-- name: post_done
DELETE FROM outbox WHERE seq = :seq AND job_id = :job_id

-- name: set_post_aside
UPDATE outbox SET aside = :aside WHERE seq = :seq AND job_id = :job_id

-- name: begin_history
-- The record as registered is written once; half of a history may be there already.
INSERT INTO histories (job_id, began, meta, status) VALUES (:job_id, :began, :meta, :status)
ON CONFLICT (job_id) DO UPDATE SET
    meta = coalesce(histories.meta, excluded.meta),
    status = coalesce(excluded.status, histories.status)

-- name: name_history
-- Of a job that was never registered here.
INSERT INTO histories (job_id, began) VALUES (:job_id, :began) ON CONFLICT DO NOTHING

-- name: add_line
-- The next number of its job, and no date before that of the line above.
INSERT INTO history_lines (job_id, n, verbatim, line)
SELECT CAST(:job_id AS TEXT), coalesce(before.n, 0) + 1, FALSE,
--only postgres: :head || {date_in_order} || :rest
--only sqlite: CAST(:head || {date_in_order} || :rest AS BLOB)
FROM (SELECT 1) AS one LEFT JOIN
    (SELECT n, line FROM history_lines WHERE job_id = :job_id ORDER BY n DESC LIMIT 1) AS before
    ON TRUE

-- name: put_line
-- With the number that it has elsewhere.
INSERT INTO history_lines (job_id, n, verbatim, line) VALUES (:job_id, :n, :verbatim, :line)
ON CONFLICT (job_id, n) DO UPDATE SET verbatim = excluded.verbatim, line = excluded.line

-- name: lines_after
SELECT n, verbatim, line FROM history_lines
WHERE job_id = :job_id AND n > :n ORDER BY n LIMIT :limit

-- name: lines_before
SELECT n, verbatim, line FROM history_lines
WHERE job_id = :job_id AND n < :n ORDER BY n DESC LIMIT :limit

-- name: last_line
SELECT max(n) FROM history_lines WHERE job_id = :job_id

-- name: last_lines
SELECT job_id, max(n) FROM history_lines GROUP BY job_id

-- name: meta
SELECT meta FROM histories WHERE job_id = :job_id

-- name: told
SELECT meta, status FROM histories WHERE job_id = :job_id

-- name: logged_status
-- Of the record where there is one, else as it was last told.
SELECT jobs.status, jobs.updated_at, histories.status, archive.body
FROM histories
LEFT JOIN jobs ON jobs.job_id = histories.job_id
LEFT JOIN archive ON archive.job_id = histories.job_id
WHERE histories.job_id = :job_id

-- name: has_history
SELECT 1 FROM histories WHERE job_id = :job_id

-- name: logged_jobs
-- Oldest history first.
SELECT job_id FROM histories ORDER BY began, job_id
