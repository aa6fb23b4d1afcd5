"""What a run asks of and writes into the row of its job: none of it finds a row whose lease is another's."""

HOLD = """
SELECT cancel_requested, set_config('idle_in_transaction_session_timeout', %s, true) FROM jobs_job
WHERE id = %s AND lease_token = %s AND status = 'running' FOR KEY SHARE
"""
PROGRESS = """
WITH job AS (
    UPDATE jobs_job SET
        stage = %(stage)s, done = %(done)s::bigint, total = %(total)s, progress_at = statement_timestamp(),
        counting_base = CASE WHEN counting_from IS NULL THEN coalesce(%(done)s::bigint, counting_base)
            ELSE counting_base END,
        counting_from = CASE WHEN %(done)s::bigint IS NOT NULL THEN coalesce(counting_from, statement_timestamp())
            ELSE counting_from END
    WHERE id = %(id)s AND lease_token = %(token)s AND status = 'running'
    RETURNING id, runs, counting_from, counting_base
), attempt AS (
    UPDATE jobs_jobattempt SET stages = %(stages)s::jsonb FROM job
    WHERE %(stages)s::jsonb IS NOT NULL AND job_id = job.id AND number = job.runs
)
SELECT counting_from, counting_base FROM job
"""
SAID = """
UPDATE jobs_job SET counters = %s, notes = %s, outcome = %s, same_as_id = %s
WHERE id = %s AND lease_token = %s AND status = 'running' RETURNING id
"""
