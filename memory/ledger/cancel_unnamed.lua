-- Asks for the cancellation of a task whose agent nobody has named: what is wished lies in its pointer until somebody does.
-- KEYS: pointer, and where layout 1 is read the task there
-- ARGV: layout, generation or 0 for the newest, reason, keep_ms
-- Returns: as ask_to_cancel.lua; 0: it was named meanwhile
local pointer, layout, agent = KEYS[1], table.remove(ARGV, 1), ''
-- include pointer
if pointed ~= '' then return 0 end
local key = KEYS[2]
if not key or layout == 'migrating' and redis.call('EXISTS', key) == 0 then
  local generation = math.max(1, tonumber(ARGV[1]))
  if not wished then
    redis.call('SET', pointer, '!' .. string.format('%.0f', generation) .. '!' .. ARGV[2], 'PX', ARGV[3])
  end
  return {generation, '', '', ''}
end
pointer = false
-- include ask_to_cancel
