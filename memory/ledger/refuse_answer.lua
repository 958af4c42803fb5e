-- Keeps the refusal of an answer with its wait, as long as those kept are not too many.
-- KEYS: task
-- ARGV: slot, refusal, most bytes of all
-- Returns: nil
local field = 'wait.' .. ARGV[1]
if redis.call('HEXISTS', KEYS[1], field) == 0 then return false end
local kept = redis.call('HGET', KEYS[1], field .. '.refusals') or ''
if #kept + #ARGV[2] < tonumber(ARGV[3]) then
  redis.call('HSET', KEYS[1], field .. '.refusals', kept .. ARGV[2] .. '\n')
end
return false
