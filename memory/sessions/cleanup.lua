-- Removes entries that have expired, or only counts them.
-- KEYS: the first eight of `memory.keys.SessionKeys`
-- ARGV: 1 to leave a running session alone, 1 to remove nothing
-- Returns: how many expired entries there were
-- include open_session
if not known or (ARGV[1] == '1' and redis.call('HGET', KEYS[1], 'state') == 'running') then return false end
local count, now = 0, session_now()
for _, key in ipairs(keys_of_entries()) do
  if not is_living(redis.call('HGET', KEYS[2], ':' .. key), now) then
    if ARGV[2] ~= '1' then remove(key) end
    count = count + 1
  end
end
return count
