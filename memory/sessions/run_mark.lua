-- Lists a session as due.
-- KEYS: an index
-- ARGV: session, ms or nothing for now
-- include calls
redis.call('ZADD', KEYS[1], ARGV[2] ~= '' and ARGV[2] or session_ms(session_now()), ARGV[1])
return false
