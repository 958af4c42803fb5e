-- Takes a session out of the list, unless it was listed anew.
-- KEYS: sessions
-- ARGV: session, score, grace_ms
-- Returns: 1: taken out; 0: not there, or listed anew
-- include calls
local score = session_call('ZSCORE', KEYS[1], ARGV[1])
if not score or tonumber(score) ~= tonumber(ARGV[2]) then return 0 end
if tonumber(score) > session_now() - tonumber(ARGV[3]) then return 0 end
return redis.call('ZREM', KEYS[1], ARGV[1])
