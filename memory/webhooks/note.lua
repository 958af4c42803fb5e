-- Notes what became of a webhook.
-- KEYS: of the outbox
-- ARGV: id, the state that this rests on, "delivered", "waits" or "failed", its new state, ms since 1970 until when the
--   id of a delivered one is known, or when it was given up
-- Returns: 1: done; 0: somebody else noted it, or it is gone
-- include names
local id, state = ARGV[1], redis.call('HGET', states, ARGV[1])
if state ~= ARGV[2] then return 0 end
if ARGV[3] == 'delivered' then
  redis.call('ZADD', expiry, ARGV[5], id)
  return drop(id)
end
local known = cjson.decode(redis.call('HGET', records, id))
local host, maker = known.host, known.maker or ''
redis.call('ZREM', queue, place(host, state, id))
redis.call('ZREM', failed, id)
redis.call('HSET', states, id, ARGV[4])
if ARGV[3] == 'failed' then
  redis.call('ZADD', failed, ARGV[5], id)
  redis.call('ZREM', made, maker .. ':' .. id)
else
  if maker ~= '' then redis.call('ZADD', made, 0, maker .. ':' .. id) end
  redis.call('ZADD', queue, 0, place(host, ARGV[4], id))
  redis.call('ZADD', hosts, 'LT', string.sub(ARGV[4], 1, 13), host)
end
return 1
