-- The index of a folder of records: derived, thrown away and rebuilt whenever in doubt.

CREATE TABLE jobs (
    job_id TEXT PRIMARY KEY,
    status TEXT NOT NULL,
    live INTEGER NOT NULL, -- pending or running: not by `status`, which a claim changes
    agent TEXT NOT NULL,
    agent_session TEXT NOT NULL,
    "group" TEXT,
    priority INTEGER NOT NULL,
    "order" INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    started_at TEXT,
    ended_at TEXT,
    reason TEXT,
    cancel_requested_at TEXT,
    last_seq INTEGER NOT NULL,
    head TEXT NOT NULL,
    node TEXT,
    -- what claims and registrations ask beyond a summary
    key TEXT,
    prompt_sum INTEGER NOT NULL,
    not_before REAL,
    parents TEXT NOT NULL,
    artifacts TEXT NOT NULL,
    timeout_sec REAL NOT NULL,
    -- the file that this row was read from
    inode INTEGER NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL
) WITHOUT ROWID;

-- Finished jobs are in none of the next four, so history costs a claim nothing.
CREATE INDEX claim_order ON jobs (agent_session, priority DESC, "order", job_id)
    WHERE status = 'pending';
CREATE INDEX running_groups ON jobs ("group") WHERE status = 'running' AND "group" IS NOT NULL;
CREATE INDEX live_keys ON jobs (key) WHERE key IS NOT NULL AND live;
CREATE INDEX live_prompts ON jobs (agent_session, prompt_sum) WHERE live;
CREATE INDEX registration_order ON jobs ("order", job_id);

CREATE TABLE parents (
    child TEXT NOT NULL,
    parent TEXT NOT NULL,
    PRIMARY KEY (child, parent)
) WITHOUT ROWID;

-- Where the artifacts of jobs will stand.
CREATE TABLE artifacts (
    path TEXT NOT NULL,
    job_id TEXT NOT NULL,
    PRIMARY KEY (path, job_id)
) WITHOUT ROWID;
CREATE INDEX artifacts_of ON artifacts (job_id);

-- The prompt as the text filter wants it; apart, so that a claim does not rewrite it.
CREATE TABLE prompts (
    job_id TEXT PRIMARY KEY,
    folded TEXT NOT NULL,
    whole INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE unreadable (
    job_id TEXT PRIMARY KEY,
    error TEXT NOT NULL,
    inode INTEGER NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL
) WITHOUT ROWID;

-- One row: the seal on the folder when everything above was true, and when each file was last
-- looked at (a change in place does not break the seal).
CREATE TABLE state (
    seal INTEGER NOT NULL,
    looked_at REAL NOT NULL,
    look_took REAL NOT NULL,
    fine INTEGER NOT NULL -- the kernel dates every change of the folder anew
);
INSERT INTO state VALUES (-4611686018427387904, 0, 0, 0);

CREATE TABLE made_for (
    version INTEGER NOT NULL,
    folder TEXT NOT NULL,
    boot TEXT NOT NULL
);
