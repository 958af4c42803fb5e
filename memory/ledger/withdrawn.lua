-- Defines `withdrawn`: whether the last run of the task KEYS[1] waits without the slot ARGV[1] of its `wait`.
-- include listed_waits
local withdrawn = listed and generation == string.format('%.0f', wait.generation)
  and redis.call('HGET', KEYS[1], 'state:' .. generation) == 'waiting'
for _, slot in ipairs(withdrawn and listed or {}) do
  if slot == ARGV[1] then withdrawn = false end
end
