-- Removes the reply to a request, unless another one was kept since it was read.
-- KEYS: the reply
-- ARGV: the reply as it was read
-- Returns: 1: another one is there; 0: there is none now
local kept = redis.call('GET', KEYS[1])
if kept and kept ~= ARGV[1] then return 1 end
redis.call('UNLINK', KEYS[1])
return 0
