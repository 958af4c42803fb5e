-- Reads the list of sessions.
-- KEYS: sessions
-- ARGV: highest score, offset, count
-- Returns: {session, score, ...}, newest first
-- include calls
return session_call('ZRANGE', KEYS[1], ARGV[1], '-inf', 'BYSCORE', 'REV', 'LIMIT', ARGV[2], ARGV[3], 'WITHSCORES')
