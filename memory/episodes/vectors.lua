-- Appends vectors behind the last one of an owner, if that is still the one that was seen, and nothing was forgotten since.
-- KEYS: vectors, meta, turns. ARGV: when the owner's turns began, the model, number of the last vector seen or 0, length of a
-- record, records. Returns 1 when done.
if redis.call('HGET', KEYS[2], 'born') ~= ARGV[1] then return 0 end
local length, last = redis.call('STRLEN', KEYS[1]), 0
if length > 0 then
  local start = length - tonumber(ARGV[4])
  last = struct.unpack('>I4', redis.call('GETRANGE', KEYS[1], start, start + 3))
end
if last ~= tonumber(ARGV[3]) then return 0 end
redis.call('APPEND', KEYS[1], ARGV[5])
redis.call('HSET', KEYS[2], 'width', ARGV[4], 'model', ARGV[2])
local left = redis.call('PTTL', KEYS[3])
if left > 0 then redis.call('PEXPIRE', KEYS[1], left) end
return 1
