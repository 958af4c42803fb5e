-- Defines `forget`: a waiter waits no more.
local function forget(waiter, waiters, looks, freed)
  local stored = redis.call('HGET', waiters, waiter)
  for _, need in ipairs(stored and cjson.decode(stored).needs or {}) do
    redis.call('ZREM', need[1] .. ':queue', waiter)
  end
  redis.call('HDEL', waiters, waiter)
  redis.call('ZREM', looks, waiter)
  redis.call('ZREM', freed, waiter)
end
