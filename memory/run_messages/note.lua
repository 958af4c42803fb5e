-- Counts bytes of a task to its owner, before they are kept; the owner's oldest tasks go where there are too many.
-- KEYS: until, bytes
-- ARGV: task, more bytes, bytes that a task may keep, bytes that an owner may keep, keep_ms
-- Returns: the tasks whose messages are to be removed
-- Of `bytes`, the field '' is the sum.
-- include ../ledger/now
local until_key, bytes_key = KEYS[1], KEYS[2]
local function drop(task)
  local size = tonumber(redis.call('HGET', bytes_key, task) or '0')
  redis.call('ZREM', until_key, task)
  redis.call('HDEL', bytes_key, task)
  redis.call('HINCRBY', bytes_key, '', -size)
end
-- Their messages are gone by their own time.
for _, task in ipairs(redis.call('ZRANGE', until_key, '-inf', string.format('%.0f', now), 'BYSCORE', 'LIMIT', 0, 100)) do drop(task) end
local had = tonumber(redis.call('HGET', bytes_key, ARGV[1]) or '0')
local has = math.min(had + tonumber(ARGV[2]), tonumber(ARGV[3]))
redis.call('HSET', bytes_key, ARGV[1], has)
local sum = tonumber(redis.call('HINCRBY', bytes_key, '', has - had))
redis.call('ZADD', until_key, string.format('%.0f', now + tonumber(ARGV[5])), ARGV[1])
local gone = {}
while sum > tonumber(ARGV[4]) and #gone < 100 do
  local oldest = redis.call('ZRANGE', until_key, 0, 0)[1]
  if oldest == ARGV[1] then break end
  drop(oldest)
  sum = tonumber(redis.call('HGET', bytes_key, ''))
  table.insert(gone, oldest)
end
redis.call('PEXPIRE', until_key, ARGV[5])
redis.call('PEXPIRE', bytes_key, ARGV[5])
return gone
