-- Removes the entries of phases.
-- KEYS: the first eight of `memory.keys.SessionKeys`
-- ARGV: phases
-- Returns: keys removed
-- include open_session
if not known then return false end
local phases, removed, now = {}, {}, session_now()
for _, phase in ipairs(ARGV) do
  phases[phase] = true
  if redis.call('HEXISTS', KEYS[6], phase) == 1 then redis.call('HSET', KEYS[6], phase, '') end
end
for _, key in ipairs(keys_of_entries()) do
  if phases[string.match(key, '^[^:]*')] then
    if is_living(redis.call('HGET', KEYS[2], ':' .. key), now) then removed[#removed + 1] = key end
    remove(key)
  end
end
touch()
return removed
