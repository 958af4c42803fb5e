-- Appends rows, each once by its id.
-- KEYS: the six of `memory.keys.QueueKeys`: rows, pending, states, closed, lease, numbers
-- ARGV: keep_ms, trace or nothing, id, body, id, body, ...
-- Returns: how many were new
-- include close_rows
local added, last = 0, math.max(tonumber(redis.call('GET', KEYS[6]) or '0'), server_us() - 1)
for at = 3, #ARGV, 2 do
  if redis.call('HSETNX', KEYS[1], ARGV[at], ARGV[at + 1]) == 1 then
    added, last = added + 1, last + 1
    redis.call('ZADD', KEYS[2], string.format('%.0f', last), ARGV[at])
    if ARGV[2] ~= '' then redis.call('HSET', KEYS[3], 't:' .. ARGV[at], ARGV[2]) end
  end
end
if added > 0 then
  redis.call('SET', KEYS[6], string.format('%.0f', last))
  for _, index in ipairs({1, 3, 4}) do redis.call('PERSIST', KEYS[index]) end
end
trim_rows(1, server_ms(), tonumber(ARGV[1]), added + 16)
return added
