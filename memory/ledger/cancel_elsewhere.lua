-- Leaves in the pointer of a task what is wished of it, for the agent that is named there: its entry is closed to the caller.
-- KEYS: pointer
-- ARGV: the agent, generation or 0 for the newest, which counts as the first where no other is known; reason
-- Returns: as ask_to_cancel.lua; 0: it names another agent
local pointer = KEYS[1]
-- include pointer
if pointed ~= ARGV[1] then return 0 end
local generation = string.format('%.0f', math.max(1, tonumber(ARGV[2])))
if not wished then redis.call('SET', pointer, pointed .. '!' .. generation .. '!' .. ARGV[3], 'KEEPTTL') end
return {tonumber(generation), '', '', ''}
