-- Keeps the refusal of an answer with its wait, as long as those kept are not too many; takes it away if it was stored.
-- KEYS: task
-- ARGV: slot, refusal, most bytes of all, the answer as it is stored or '' for one that is not
-- Returns: nil
local field = 'wait.' .. ARGV[1]
if redis.call('HEXISTS', KEYS[1], field) == 0 then return false end
if ARGV[4] ~= '' and redis.call('HGET', KEYS[1], field .. '.answer') == ARGV[4] then
  redis.call('HDEL', KEYS[1], field .. '.answer')
end
local kept = redis.call('HGET', KEYS[1], field .. '.refusals') or ''
if #kept + #ARGV[2] < tonumber(ARGV[3]) then
  redis.call('HSET', KEYS[1], field .. '.refusals', kept .. ARGV[2] .. '\n')
end
return false
