-- Follows links from record to record.
-- KEYS: records, successors, links
-- ARGV: record id, most steps
-- Returns: id, record, id of what supersedes it or nil, ...
local records, successors, links = KEYS[1], KEYS[2], KEYS[3]
local id, reply = ARGV[1], {}
for step = 1, math.min(tonumber(ARGV[2]), 10000) do
  id = redis.call('HGET', links, id)
  if not id then break end
  reply[3 * step - 2], reply[3 * step - 1] = id, redis.call('HGET', records, id)
  reply[3 * step] = redis.call('HGET', successors, id)
end
return reply
