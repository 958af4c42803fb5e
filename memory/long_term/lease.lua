-- Takes the lease of a flight, unless its answer is remembered already.
-- KEYS: flight, entry
-- ARGV: token, lease_ms, 1: ignore the entry, field
-- Without a field it asks whether the entry itself is there.
-- Returns: -1: yours; -2: remembered; else ms it is held
local flight, token, field = KEYS[1], ARGV[1], ARGV[4]
if ARGV[3] ~= '1' then
  local there
  if field then there = redis.pcall('HEXISTS', KEYS[2], field) else there = redis.call('EXISTS', KEYS[2]) end
  if type(there) == 'table' and not string.find(there.err, '^WRONGTYPE ') then return there end
  if there == 1 then return -2 end
end
local owner = redis.call('HGET', flight, 'owner')
if owner and owner ~= token then
  redis.call('HSET', flight, 'awaited', 1)
  return math.max(1, redis.call('PTTL', flight))
end
redis.call('HSET', flight, 'owner', token)
redis.call('PEXPIRE', flight, ARGV[2])
return -1
