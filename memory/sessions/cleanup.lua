-- Removes entries that have expired.
-- KEYS: the first eight of `memory.keys.SessionKeys`
-- ARGV: 1 to leave a running session alone
-- Returns: how many expired entries were removed
-- include open_session
if not known or (ARGV[1] == '1' and redis.call('HGET', KEYS[1], 'state') == 'running') then return false end
local count, now = 0, session_now()
for _, key in ipairs(keys_of_entries()) do
  if not is_living(redis.call('HGET', KEYS[2], ':' .. key), now) then
    remove(key)
    count = count + 1
  end
end
return count
