-- Tells whether a run runs, and until when it is held.
-- Returns: {1 when it runs, ms until which it is held or 0}
-- include run_calls
local left = redis.call('PTTL', lease)
local until_ms = left == -2 and 0 or session_now() + math.max(1, left)
return {redis.call('HGET', root, 'state') == 'running' and 1 or 0, until_ms}
