-- Writes entries.
-- KEYS: the first eight of `memory.keys.SessionKeys`
-- ARGV: task or nothing, its phase or nothing, then of each entry its key, time to live in ms or nothing, 1 to leave a living one as it
--   is, head without numbers, and body
-- Returns: {`done`}; {`replaced`, phase, task}
-- include open_session
if not known then return false end
local task, own = ARGV[1], ARGV[2]
if task ~= '' then
  local runs = redis.call('HEXISTS', KEYS[1], 'pipeline') == 1
  for at = 3, own ~= '' and 3 or #ARGV, 5 do
    local phase = own ~= '' and own or string.match(ARGV[at], '^[^:]+')
    local writer = redis.call('HGET', KEYS[6], phase) or (runs and '')
    if writer and writer ~= task then return {'replaced', phase, writer} end
  end
end
local now = session_now()
for at = 3, #ARGV, 5 do
  local key, ttl = ARGV[at], ARGV[at + 1]
  if ARGV[at + 2] ~= '1' or not is_living(redis.call('HGET', KEYS[2], ':' .. key), now) then
    local number = redis.call('HINCRBY', KEYS[1], 'writes', 1)
    local expires = ttl ~= '' and session_ms(now + tonumber(ttl)) or '0'
    local head = expires .. ':' .. session_ms(now) .. ':' .. session_ms(number) .. ':' .. ARGV[at + 3]
    redis.call('HSET', KEYS[2], ':' .. key, head, key, ARGV[at + 4])
    redis.call('HDEL', KEYS[3], key)
  end
end
touch(session_ms(now))
return {'done'}
