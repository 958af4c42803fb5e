-- Removes a story.
-- KEYS: base, then all others
-- Returns: 1: it was there; 0: it was not
local known = redis.call('EXISTS', KEYS[1])
redis.call('UNLINK', unpack(KEYS))
return known
