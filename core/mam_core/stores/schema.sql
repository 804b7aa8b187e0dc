-- The tables of a registry in a database: version 1.
--
-- Written for PostgreSQL; SQLite takes the same words. A line that begins with `--only NAME:` is
-- for that one alone. Each version is one step that happens whole or not at all; what stands here
-- is never changed once it was released, a later version is a file of its own.

-- What all who work on this registry share: a name for it on brokers, and a key to sign with.
CREATE TABLE registry (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    realm TEXT NOT NULL,
    secret TEXT NOT NULL
);
--only sqlite: INSERT INTO registry VALUES (1, lower(hex(randomblob(4))), lower(hex(randomblob(32))));
--only postgres: INSERT INTO registry VALUES (1, substr(gen_random_uuid()::text, 1, 8), gen_random_uuid()::text || gen_random_uuid()::text);

CREATE TABLE jobs (
    job_id TEXT PRIMARY KEY,
    -- what a list shows
    status TEXT NOT NULL,
    agent TEXT NOT NULL,
    agent_session TEXT NOT NULL,
    "group" TEXT,
    priority BIGINT NOT NULL,
    "order" BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    started_at TEXT,
    ended_at TEXT,
    reason TEXT,
    cancel_requested_at TEXT,
    last_seq BIGINT NOT NULL,
    head TEXT NOT NULL,
    node TEXT,
    not_before DOUBLE PRECISION,
    parents TEXT NOT NULL,
    timeout_sec DOUBLE PRECISION NOT NULL,
    -- what claims and registrations ask beyond that
    key TEXT,
    prompt_sum BIGINT NOT NULL,
    -- a value had no form as a column: whoever shows the row reads the body instead
    inexact BOOLEAN NOT NULL,
    -- which transaction wrote it last: a feed asks what came after the one it knows
    changed BIGINT NOT NULL,
    -- the whole record as JSON, byte by byte, with the keys that we do not know
    body BYTEA NOT NULL
);

-- Finished jobs are in none of the next four, so history costs a claim nothing.
CREATE INDEX claim_order ON jobs (agent_session, priority DESC, "order", job_id)
    WHERE status = 'pending';
CREATE INDEX running_groups ON jobs ("group") WHERE status = 'running' AND "group" IS NOT NULL;
CREATE INDEX live_keys ON jobs (key) WHERE key IS NOT NULL AND status IN ('pending', 'running');
CREATE INDEX live_prompts ON jobs (agent_session, prompt_sum) WHERE status IN ('pending', 'running');
CREATE INDEX registration_order ON jobs ("order", job_id);
CREATE INDEX changed_jobs ON jobs (changed);
-- The sweep asks for running jobs every few seconds.
CREATE INDEX running_jobs ON jobs (job_id) WHERE status = 'running';

CREATE TABLE parents (
    child TEXT NOT NULL,
    parent TEXT NOT NULL,
    PRIMARY KEY (child, parent)
);

-- Where the artifacts of jobs will stand.
CREATE TABLE artifacts (
    path TEXT NOT NULL,
    job_id TEXT NOT NULL,
    PRIMARY KEY (path, job_id)
);
CREATE INDEX artifacts_of ON artifacts (job_id);

-- The prompt as the text filter wants it; apart, so that a claim does not rewrite it.
CREATE TABLE prompts (
    job_id TEXT PRIMARY KEY,
    folded TEXT NOT NULL,
    whole BOOLEAN NOT NULL
);

-- Records that nobody can read, brought here from a folder: listed, kept, never claimed.
CREATE TABLE unreadable (
    job_id TEXT PRIMARY KEY,
    error TEXT NOT NULL,
    body BYTEA NOT NULL
);

-- Cleaned jobs, until `clean --undo`; for a feed these are the jobs that are gone.
CREATE TABLE archive (
    batch TEXT NOT NULL,
    job_id TEXT NOT NULL,
    changed BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (batch, job_id)
);
CREATE INDEX archived_jobs ON archive (job_id);
CREATE INDEX changed_archive ON archive (changed);

-- Pauses and slots, as one small JSON text; one row at most.
CREATE TABLE gates (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    body BYTEA NOT NULL
);

-- Small documents of the registry itself, which no claim reads.
CREATE TABLE papers (
    name TEXT PRIMARY KEY,
    body BYTEA NOT NULL
);

-- Events that no broker has taken yet; those with a reason are set aside and never sent.
CREATE TABLE outbox (
    seq BIGINT NOT NULL,
    job_id TEXT NOT NULL,
    body BYTEA NOT NULL,
    aside TEXT,
    PRIMARY KEY (seq, job_id)
);

-- The audit log: the record as registered, and the status of a job that has no record any more.
CREATE TABLE histories (
    job_id TEXT PRIMARY KEY,
    began TEXT NOT NULL,
    meta BYTEA,
    status BYTEA
);

-- Its lines, 1..n for each job. Ours are kept without their number, which is put in front when they
-- are read; `verbatim` ones came from a folder and are kept as they stood there.
CREATE TABLE history_lines (
    job_id TEXT NOT NULL,
    n BIGINT NOT NULL,
    verbatim BOOLEAN NOT NULL,
    line BYTEA NOT NULL,
    PRIMARY KEY (job_id, n)
--only sqlite: ) WITHOUT ROWID;
--only postgres: );
