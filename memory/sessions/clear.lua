-- Removes all entries.
-- KEYS: the first eight of `memory.keys.SessionKeys`
-- Returns: how many entries were removed
-- include open_session
if not known then return false end
local count, now = 0, session_now()
for _, key in ipairs(keys_of_entries()) do
  if is_living(redis.call('HGET', KEYS[2], ':' .. key), now) then count = count + 1 end
end
redis.call('UNLINK', KEYS[2], KEYS[3], KEYS[4])
touch()
return count
