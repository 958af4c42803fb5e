-- Counts how often entries of a user were served.
-- KEYS: users, served
-- ARGV: entry key, count, entry key, count, ...
-- Returns: nil
local users, served = KEYS[1], KEYS[2]
for index = 1, #ARGV, 2 do
  if redis.call('ZSCORE', users, ARGV[index]) then redis.call('HINCRBY', served, ARGV[index], ARGV[index + 1]) end
end
if redis.call('HLEN', served) > 2 * redis.call('ZCARD', users) + 100 then
  for _, entry in ipairs(redis.call('HKEYS', served)) do
    if not redis.call('ZSCORE', users, entry) then redis.call('HDEL', served, entry) end
  end
end
local left = redis.call('PTTL', users)
if left > 0 then redis.call('PEXPIRE', served, left) else redis.call('PERSIST', served) end
return false
