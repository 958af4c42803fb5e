-- Puts a webhook into the outbox; where that is full, the one that was given up first makes room.
-- KEYS: of the outbox
-- ARGV: id, record, state, most of all, most that wait for one host, most that wait of one maker
-- Returns: 1: stored; 0: it is there, or was delivered; -1: there is no room
-- include names
-- include ../records/makers
local id, record = ARGV[1], cjson.decode(ARGV[2])
if redis.call('HEXISTS', records, id) == 1 or redis.call('ZSCORE', expiry, id) then return 0 end
local waiting = redis.call('ZLEXCOUNT', queue, '[' .. record.host .. ' ', '(' .. record.host .. '!')
if waiting >= tonumber(ARGV[5]) then return -1 end
local function is_gone(other)
  return redis.call('HEXISTS', records, other) == 0 or redis.call('ZSCORE', failed, other)
end
if record.maker ~= '' and has_most(made, record.maker, ARGV[6], is_gone) then return -1 end
if redis.call('HLEN', records) >= tonumber(ARGV[4]) then
  local oldest = redis.call('ZRANGE', failed, 0, 0)[1]
  if not oldest then return -1 end
  drop(oldest)
end
redis.call('HSET', records, id, ARGV[2])
redis.call('HSET', states, id, ARGV[3])
if record.maker ~= '' then redis.call('ZADD', made, 0, record.maker .. ':' .. id) end
redis.call('ZADD', queue, 0, place(record.host, ARGV[3], id))
redis.call('ZADD', hosts, 'LT', string.sub(ARGV[3], 1, 13), record.host)
if record.owner ~= '' then redis.call('ZADD', owned, 0, record.owner .. ':' .. id) end
return 1
