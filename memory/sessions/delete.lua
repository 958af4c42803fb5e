-- Removes an entry.
-- KEYS: the first eight of `memory.keys.SessionKeys`
-- ARGV: key
-- Returns: 1: removed; 0: there was none
-- include open_session
if not known then return false end
local living = is_living(redis.call('HGET', KEYS[2], ':' .. ARGV[1]), session_now())
remove(ARGV[1])
touch()
return living and 1 or 0
