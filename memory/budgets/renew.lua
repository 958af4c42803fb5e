-- Keeps calls of a process that lives, and takes those of dead ones off what is reserved.
-- KEYS: calls, leases
-- ARGV: now_ms or nothing, lease_ms, calls ...
-- Returns: nil
-- include clock
-- include checks
-- include accounts
for i = 3, #ARGV do
  local until_ms = redis.call('ZSCORE', KEYS[2], ARGV[i])
  if until_ms and tonumber(until_ms) > now then redis.call('ZADD', KEYS[2], text(now + tonumber(ARGV[2])), ARGV[i]) end
end
expire(KEYS[1], KEYS[2])
return false
