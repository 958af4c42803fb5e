-- Appends vectors behind the last one of an owner, if that is still the one that was seen.
-- KEYS: vectors, meta. ARGV: number of the last vector seen or 0, length of a record, records. Returns 1 when done.
local length = redis.call('STRLEN', KEYS[1])
local last = 0
if length > 0 then
  local start = length - tonumber(ARGV[2])
  last = struct.unpack('>I4', redis.call('GETRANGE', KEYS[1], start, start + 3))
end
if last ~= tonumber(ARGV[1]) then return 0 end
redis.call('APPEND', KEYS[1], ARGV[3])
redis.call('HSET', KEYS[2], 'width', ARGV[2])
return 1
