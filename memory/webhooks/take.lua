-- Takes webhooks of a host that are due: no other process is given them until the lease is over.
-- KEYS: of the outbox
-- ARGV: host, ms since 1970 and those of the end of the lease, 13 digits each, how many at most
-- Returns: id, record and state of each
-- include names
local host, taken = ARGV[1], {}
local first, last = '[' .. host .. ' ', '(' .. host .. ' ' .. ARGV[2] .. '!'
for _, member in ipairs(redis.call('ZRANGEBYLEX', queue, first, last, 'LIMIT', 0, ARGV[4])) do
  local id = string.match(member, '(%S+)$')
  local state = ARGV[3] .. string.sub(redis.call('HGET', states, id), 14)
  redis.call('ZREM', queue, member)
  redis.call('ZADD', queue, 0, place(host, state, id))
  redis.call('HSET', states, id, state)
  for _, each in ipairs({id, redis.call('HGET', records, id), state}) do table.insert(taken, each) end
end
local left = redis.call('ZRANGEBYLEX', queue, first, '(' .. host .. '!', 'LIMIT', 0, 1)[1]
if left then
  redis.call('ZADD', hosts, string.match(left, '^%S+ (%d+)'), host)
else
  redis.call('ZREM', hosts, host)
end
return taken
