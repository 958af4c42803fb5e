-- Lists a session as updated now.
-- KEYS: sessions
-- ARGV: session
-- Returns: its score
-- include calls
local score = session_ms(session_now())
session_call('ZADD', KEYS[1], score, ARGV[1])
return score
