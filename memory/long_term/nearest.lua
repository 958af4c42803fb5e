-- Finds the first place whose entry is still there; lets go of the places of those that are not.
-- KEYS: near, until, near:2, ..., entry, ...
-- ARGV: place, ...
-- Returns: number and value of the first that is there, or nil
local indexes = #KEYS - #ARGV
for number = 1, #ARGV do
  local value = redis.call('GET', KEYS[indexes + number])
  if value then return {number, value} end
  for index = 1, indexes do redis.call('ZREM', KEYS[index], ARGV[number]) end
end
return false
