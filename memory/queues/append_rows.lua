-- Appends rows, each once by its id; what was said before a tombstone of the user lies beside that until it is over.
-- KEYS: the six of `memory.keys.QueueKeys`: rows, pending, states, closed, lease, numbers; the tombstone, and its late rows
-- ARGV: keep_ms, when it was said in ms since 1970 or nothing; of each row its id, body, and trace or nothing
-- Returns: how many were new
-- include close_rows
-- include put_rows
local said_ms, hidden_until = tonumber(ARGV[2]), tonumber(redis.call('HGET', KEYS[7], '#until'))
if said_ms and hidden_until and said_ms <= hidden_until then
  for at = 3, #ARGV, 3 do redis.call('HSET', KEYS[8], ARGV[at], ARGV[at + 1]) end
  local left_ms = redis.call('PTTL', KEYS[7])
  if left_ms > 0 then redis.call('PEXPIRE', KEYS[8], left_ms) end
  return 0
end
demand_types(1)
return put_rows(1, tonumber(ARGV[1]), 3, #ARGV)
