-- Takes a session out of the index.
-- KEYS: running
-- ARGV: session, grace_ms or nothing
-- include calls
local score, now = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '0'), session_now()
if ARGV[2] == '' and score <= now then return false end
if ARGV[2] ~= '' and score > now - tonumber(ARGV[2]) then return false end
redis.call('ZREM', KEYS[1], ARGV[1])
return false
