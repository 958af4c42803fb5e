-- Lets a waiter be woken again that did not wait yet, or forgets one that waits no more.
-- KEYS: waiters, looks, freed: see wake
-- ARGV: now_ms or nothing, waiter, 1 to forget it
-- Returns: nil
-- include clock
-- include waiters
if ARGV[3] == '1' then
  forget(ARGV[2], KEYS[1], KEYS[2], KEYS[3])
  return false
end
-- Ms for which a worker takes to note that its task waits. One that goes on without a model does not wait at all.
local NOTED = 5000
local stored = redis.call('HGET', KEYS[1], ARGV[2])
local record = stored and cjson.decode(stored)
if record and record.at + NOTED > now then
  record.woken = nil
  redis.call('HSET', KEYS[1], ARGV[2], cjson.encode(record))
end
return false
