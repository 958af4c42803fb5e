-- Counts how often entries were served; the counts live as long as these.
-- KEYS: entry, hits, entry, hits, ...
-- ARGV: count, count, ...
-- Returns: how many entries were still there
local counted = 0
for index = 1, #ARGV do
  local entry, hits = KEYS[2 * index - 1], KEYS[2 * index]
  local left = redis.call('PTTL', entry)
  if left ~= -2 then
    redis.call('INCRBY', hits, ARGV[index])
    if left > 0 then redis.call('PEXPIRE', hits, left) else redis.call('PERSIST', hits) end
    counted = counted + 1
  end
end
return counted
