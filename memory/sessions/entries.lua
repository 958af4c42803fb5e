-- Lists the living entries.
-- KEYS: the first eight of `memory.keys.SessionKeys`
-- Phases are {phase, state, ...}, the JSON of each; the run began at nothing where no pipeline runs, at 0 where it is the
-- first run, else in ms since 1970.
-- Returns: {now_ms, phases, run began, {key, head, hits, phase that hides it or nothing}, ...}
-- include open_session
if not known then return false end
local now, replaced, replacing = session_now(), redis.call('HGETALL', KEYS[7]), {}
for at = 1, #replaced, 2 do replacing[replaced[at]] = replaced[at + 1] end
local run = redis.call('HMGET', KEYS[1], 'run', 'began_at')
local found = {session_ms(now), redis.call('HGETALL', KEYS[5]), run[1] and (run[2] or '0') or ''}
for _, key in ipairs(keys_of_entries()) do
  local head = redis.call('HGET', KEYS[2], ':' .. key)
  if is_living(head, now) then
    local by = replacing[string.match(key, '^[^:]*')] or ''
    found[#found + 1] = {key, head, redis.call('HGET', KEYS[3], key) or '0', by}
  end
end
return found
