-- Makes a session.
-- KEYS: the nine of `memory.keys.SessionKeys`
-- ARGV: token, that of a load or nothing, created_ms and updated_ms or nothing, root
-- Returns: 1: made; 0: taken
-- include touch
session_mend()
if redis.call('EXISTS', KEYS[1]) == 1 then return redis.call('HGET', KEYS[1], 'made_by') == ARGV[1] and 1 or 0 end
if ARGV[2] ~= '' and redis.call('HGET', KEYS[3], ':loading') ~= ARGV[2] then return 0 end
for at = 2, 9 do
  if at > 3 or ARGV[2] == '' then redis.call('UNLINK', KEYS[at]) end
end
redis.call('HDEL', KEYS[3], ':loading')
local now = session_ms(session_now())
for at = 5, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1]) end
redis.call('HSET', KEYS[1], 'made_by', ARGV[1], 'created_at', ARGV[3] ~= '' and ARGV[3] or now)
touch(ARGV[4] ~= '' and ARGV[4] or now)
return 1
