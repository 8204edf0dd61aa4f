-- One bandit: everything that outlives a process. A schema holds one of them.

CREATE TABLE bandit (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    format     integer NOT NULL,
    plan       jsonb NOT NULL,                       -- as it was made: algorithm, size, seed, schedule
    settings   jsonb NOT NULL,                       -- what an operator may change
    arms       bigint NOT NULL DEFAULT 0,            -- how often arms have changed: replicas read them again then
    created_at timestamptz NOT NULL DEFAULT now(),
    versions   jsonb NOT NULL
);

-- Who learns. Every write of a learner is made under the epoch with which it was elected, in the same transaction.
CREATE TABLE learner (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    epoch      bigint NOT NULL DEFAULT 0,
    holder     text,
    since      timestamptz,
    seen_at    timestamptz
);
INSERT INTO learner DEFAULT VALUES;

-- Features with a slot of their own, and arms that callers need not describe.
CREATE TABLE vocabulary (
    slot       integer PRIMARY KEY,
    name       text NOT NULL UNIQUE,
    added_at   timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE arms (
    id         text PRIMARY KEY,
    place      bigint GENERATED ALWAYS AS IDENTITY,
    features   json NOT NULL
);

-- Blocks of decision numbers: a process takes one at a time. A number is also the decision's random key.
CREATE SEQUENCE blocks MINVALUE 0 START 0;

-- Decisions are written once and never changed.
CREATE TABLE decisions (
    number       bigint PRIMARY KEY,
    event_id     text NOT NULL UNIQUE,
    digest       bytea NOT NULL,                     -- tells a repeated request from another one with the same id
    made_at      timestamptz NOT NULL DEFAULT now(),
    user_key     text,
    model        bigint NOT NULL,                    -- version of the model that decided
    replica      text NOT NULL,
    arms         text[] NOT NULL,
    arm          text NOT NULL,                      -- the one to use
    position     integer NOT NULL,                   -- of it, from 0
    preferred    integer NOT NULL,                   -- the position with the highest score
    greedy       integer NOT NULL,                   -- the position with the highest mean
    imposed      boolean NOT NULL,
    exploration  double precision NOT NULL,
    propensities double precision[] NOT NULL,
    score        double precision[] NOT NULL,
    mean         double precision[] NOT NULL,
    width        double precision[] NOT NULL,
    context      bytea NOT NULL,                     -- of the arm used: float32, what is learned from
    contexts     bytea,                              -- of all arms, zlib: for export
    features     bytea                               -- the request as it came, JSON in UTF-8
);
CREATE INDEX decisions_by_user ON decisions (user_key) WHERE user_key IS NOT NULL;
CREATE INDEX decisions_by_time ON decisions (made_at);

-- What became of each decision: the join with its rewards, and its place in the order of learning.
CREATE TABLE outcomes (
    number     bigint PRIMARY KEY REFERENCES decisions ON DELETE CASCADE,
    status     text NOT NULL CHECK (status IN ('inactive', 'waiting', 'observed', 'defaulted', 'expired')),
    due_at     timestamptz,                          -- when time is up
    reward     double precision,
    ready_at   timestamptz,                          -- when it got the reward that is learned
    position   bigint UNIQUE,                        -- place in the order of learning, from 1: each decision once
    batch      bigint,                               -- learned together
    forgotten  bigint                                -- by a rollback: models from this version on do not know it
) WITH (fillfactor = 80);
CREATE INDEX outcomes_due ON outcomes (due_at) WHERE status IN ('inactive', 'waiting');
CREATE INDEX outcomes_ready ON outcomes (ready_at, number)
    WHERE status IN ('observed', 'defaulted') AND position IS NULL;

-- Every reward that was received, and what became of it.
CREATE TABLE rewards (
    number      bigint NOT NULL REFERENCES decisions ON DELETE CASCADE,
    key         text NOT NULL,                       -- the caller's reward_id, or one per call
    value       double precision NOT NULL,
    fate        text NOT NULL CHECK (fate IN ('learned', 'kept', 'repeated', 'late')),
    received_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (number, key)
);

-- Models: those of lessons, of which only the last is kept, and snapshots.
CREATE TABLE models (
    number       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind         text NOT NULL CHECK (kind IN ('lesson', 'snapshot')),
    version      bigint NOT NULL,
    epoch        bigint NOT NULL,
    position     bigint NOT NULL,                    -- it has learned from the outcomes up to here
    observations bigint NOT NULL,
    made_at      timestamptz NOT NULL DEFAULT now(),
    pinned       boolean NOT NULL DEFAULT false,
    fields       text NOT NULL,                      -- JSON
    arrays       bytea NOT NULL,                     -- safetensors
    sha256       bytea NOT NULL                      -- of arrays and fields
);
CREATE INDEX models_by_version ON models (version);
ALTER TABLE models ALTER COLUMN arrays SET STORAGE EXTERNAL;

-- The newest model, rewritten every moment: not logged, since a crash of the server costs nothing that the learner
-- or the last lesson does not have.
CREATE UNLOGGED TABLE live_model (
    only_row     boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version      bigint NOT NULL,
    epoch        bigint NOT NULL,
    position     bigint NOT NULL,
    observations bigint NOT NULL,
    made_at      timestamptz NOT NULL DEFAULT now(),
    fields       text NOT NULL,
    arrays       bytea NOT NULL,
    sha256       bytea NOT NULL
) WITH (autovacuum_vacuum_threshold = 5, autovacuum_vacuum_scale_factor = 0);
ALTER TABLE live_model ALTER COLUMN arrays SET STORAGE EXTERNAL;

CREATE TABLE lessons (
    number       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind         text NOT NULL CHECK (kind IN ('lesson', 'relearn')),
    epoch        bigint NOT NULL,
    position     bigint NOT NULL,                    -- it learned from the outcomes up to here
    observations bigint NOT NULL,
    promoted     boolean NOT NULL,
    loss         double precision,
    failure      text,
    seconds      double precision NOT NULL,
    ended_at     timestamptz NOT NULL DEFAULT now()
);

-- Counters of each process, changed with what they count.
CREATE TABLE processes (
    name       text PRIMARY KEY,
    role       text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now(),
    decisions  bigint NOT NULL DEFAULT 0,
    explored   bigint NOT NULL DEFAULT 0,
    learned    bigint NOT NULL DEFAULT 0,
    kept       bigint NOT NULL DEFAULT 0,
    repeated   bigint NOT NULL DEFAULT 0,
    late       bigint NOT NULL DEFAULT 0,
    unknown    bigint NOT NULL DEFAULT 0,
    settled    bigint NOT NULL DEFAULT 0,
    defaulted  bigint NOT NULL DEFAULT 0,
    expired    bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Who was deleted when is kept without the key.
CREATE TABLE deletions (
    number       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    deleted_at   timestamptz NOT NULL DEFAULT now(),
    reason       text NOT NULL,
    decisions    bigint NOT NULL,
    learned      bigint NOT NULL,
    unchanged    bigint NOT NULL,                    -- outcomes up to this position are as they were
    relearned_at timestamptz                         -- when the model had learned again without them
);
