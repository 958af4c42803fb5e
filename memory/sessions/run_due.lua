-- Lists sessions that are due.
-- KEYS: running
-- ARGV: limit
-- Returns: sessions
-- include calls
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', session_ms(session_now()), 'LIMIT', 0, ARGV[1])
