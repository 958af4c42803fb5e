-- Stores other limits, unless somebody changed them meanwhile.
-- KEYS: limits, their history
-- ARGV: the version that was read, "" for whatever stands there; limits as JSON, who, when, how many versions stay
-- Returns: the new version, or -1
local version = redis.call('HGET', KEYS[1], 'version') or '0'
if ARGV[1] ~= '' and ARGV[1] ~= version then return -1 end
local new = tonumber(version) + 1
redis.call('HSET', KEYS[1], 'version', new, 'limits', ARGV[2], 'who', ARGV[3], 'when', ARGV[4])
redis.call('LPUSH', KEYS[2], cjson.encode({version = new, who = ARGV[3], when = ARGV[4], limits = ARGV[2]}))
redis.call('LTRIM', KEYS[2], 0, tonumber(ARGV[5]) - 1)
return new
