-- Functions and views: made with the tables, and again by every version that has others (FORMAT in schema.py).

CREATE OR REPLACE FUNCTION give_reward(of_event text, amount double precision, reward_key text, aggregation text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    it      outcomes%ROWTYPE;
    earlier text;
    become  text;
BEGIN
    SELECT outcomes.* INTO it FROM outcomes JOIN decisions USING (number) WHERE event_id = of_event
        FOR UPDATE OF outcomes;
    IF NOT FOUND THEN
        RETURN 'unknown';
    END IF;
    SELECT fate INTO earlier FROM rewards WHERE number = it.number AND key = reward_key;
    IF reward_key LIKE 'call:%' AND earlier IS NOT NULL THEN
        RETURN 'again ' || earlier;  -- its commit got no answer: it says what it said before
    ELSIF earlier IN ('learned', 'kept') THEN
        RETURN 'repeated';  -- one that was ignored is judged anew: late stays late
    END IF;
    IF it.status IN ('defaulted', 'expired') OR it.due_at <= clock_timestamp() THEN
        become := 'late';
    ELSIF it.status = 'observed' OR aggregation = 'earliest' AND it.reward IS NOT NULL THEN
        become := 'repeated';
    ELSE
        become := CASE WHEN it.status = 'waiting' AND aggregation = 'earliest' THEN 'learned' ELSE 'kept' END;
        UPDATE outcomes SET
            reward = coalesce(reward, 0) + amount,
            status = CASE become WHEN 'learned' THEN 'observed' ELSE status END,
            ready_at = CASE become WHEN 'learned' THEN clock_timestamp() END
        WHERE number = it.number;
    END IF;
    INSERT INTO rewards (number, key, value, fate) VALUES (it.number, reward_key, amount, become)
        ON CONFLICT (number, key) DO UPDATE SET value = amount, fate = become, received_at = now();
    RETURN become;
END $$;

CREATE OR REPLACE FUNCTION activate_event(of_event text, aggregation text, wait double precision) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    it      outcomes%ROWTYPE;
    is_ready boolean;
BEGIN
    SELECT outcomes.* INTO it FROM outcomes JOIN decisions USING (number) WHERE event_id = of_event
        FOR UPDATE OF outcomes;
    IF NOT FOUND THEN
        RETURN 'unknown';
    ELSIF it.status = 'expired' OR it.status = 'inactive' AND it.due_at <= clock_timestamp() THEN
        RETURN 'late';
    ELSIF it.status <> 'inactive' THEN
        RETURN 'repeated';
    END IF;
    is_ready := aggregation = 'earliest' AND it.reward IS NOT NULL;
    UPDATE outcomes SET
        status = CASE WHEN is_ready THEN 'observed' ELSE 'waiting' END,
        ready_at = CASE WHEN is_ready THEN clock_timestamp() END,
        due_at = clock_timestamp() + make_interval(secs => wait)
    WHERE number = it.number;
    RETURN 'activated';
END $$;

-- Events whose time is up get what they get.
CREATE OR REPLACE FUNCTION settle_events(most bigint, default_reward double precision) RETURNS SETOF text
LANGUAGE sql AS $$
    WITH late AS (
        SELECT number FROM outcomes WHERE status IN ('inactive', 'waiting') AND due_at <= clock_timestamp()
        ORDER BY due_at LIMIT most FOR UPDATE SKIP LOCKED
    )
    UPDATE outcomes SET
        status = CASE WHEN status = 'inactive' THEN 'expired' WHEN reward IS NULL THEN 'defaulted' ELSE 'observed' END,
        reward = CASE WHEN status = 'inactive' THEN reward ELSE coalesce(reward, default_reward) END,
        ready_at = CASE WHEN status = 'inactive' THEN NULL ELSE clock_timestamp() END
    FROM late WHERE outcomes.number = late.number
    RETURNING status;
$$;

CREATE OR REPLACE VIEW events AS
    SELECT event_id, made_at, user_key, arm, propensities[d.position + 1] AS propensity, status, reward, due_at,
           ready_at, model, replica, imposed, d.position <> greedy AND NOT imposed AS explored,
           o.position AS learned_as, forgotten IS NOT NULL AS forgotten
    FROM decisions d JOIN outcomes o USING (number);

CREATE OR REPLACE VIEW rewards_by_arm AS
    SELECT arm, count(*) AS decisions, count(reward) AS rewarded, avg(reward) AS mean_reward,
           stddev_samp(reward) / sqrt(nullif(count(reward), 0)) AS standard_error,
           count(*)::double precision / sum(count(*)) OVER () AS share
    FROM events WHERE status IN ('observed', 'defaulted', 'waiting') GROUP BY arm;

CREATE OR REPLACE VIEW rewards_by_hour AS
    SELECT date_trunc('hour', made_at) AS hour, count(*) AS decisions, avg(reward) AS mean_reward,
           count(*) FILTER (WHERE status = 'defaulted') AS defaulted, avg(explored::integer) AS explored
    FROM events GROUP BY 1;

CREATE OR REPLACE VIEW snapshots AS
    SELECT number, made_at, observations, version, octet_length(arrays) + octet_length(fields) AS bytes, pinned
    FROM models WHERE kind = 'snapshot';
