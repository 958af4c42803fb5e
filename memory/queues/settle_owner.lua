-- Notes when an owner has something to claim next, unless it was marked meanwhile.
-- KEYS: owners
-- ARGV: token, score seen or nothing, look
-- Returns: 1: settled; 0: somebody marked it meanwhile
local found = redis.call('ZSCORE', KEYS[1], ARGV[1])
if (found and tonumber(found)) ~= (ARGV[2] ~= '' and tonumber(ARGV[2])) then return 0 end
if ARGV[3] == '-1' then redis.call('ZREM', KEYS[1], ARGV[1]) else redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1]) end
return 1
