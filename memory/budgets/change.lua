-- Stores other limits, unless somebody changed them meanwhile; who waits for room under the old ones waits anew.
-- KEYS: limits, their history, accounts
-- ARGV: the version that was read, "" for whatever stands there; limits as JSON, who, when, how many versions stay
-- Returns: the new version, or -1
local version = redis.call('HGET', KEYS[1], 'version') or '0'
if ARGV[1] ~= '' and ARGV[1] ~= version then return -1 end
local new = tonumber(version) + 1
redis.call('HSET', KEYS[1], 'version', new, 'limits', ARGV[2], 'who', ARGV[3], 'when', ARGV[4])
redis.call('LPUSH', KEYS[2], cjson.encode({version = new, who = ARGV[3], when = ARGV[4], limits = ARGV[2]}))
redis.call('LTRIM', KEYS[2], 0, tonumber(ARGV[5]) - 1)
for _, account in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do redis.call('UNLINK', account .. ':queue') end
return new
