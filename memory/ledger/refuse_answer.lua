-- Keeps the refusal of an answer with its wait, as long as those kept, and those of one author, are not too many; takes
-- the answer away if it was stored.
-- KEYS: task
-- ARGV: slot, refusal, most bytes of all, most refusals of one author, the answer as it is stored or '' for one that is not
-- Returns: nil
local field = 'wait.' .. ARGV[1]
if redis.call('HEXISTS', KEYS[1], field) == 0 then return false end
if ARGV[5] ~= '' and redis.call('HGET', KEYS[1], field .. '.answer') == ARGV[5] then
  redis.call('HDEL', KEYS[1], field .. '.answer')
end
local kept = redis.call('HGET', KEYS[1], field .. '.refusals') or ''
local by = cjson.decode(ARGV[2]).by
local own = 0
for line in string.gmatch(kept, '[^\n]+') do
  if cjson.decode(line).by == by then own = own + 1 end
end
if own < tonumber(ARGV[4]) and #kept + #ARGV[2] < tonumber(ARGV[3]) then
  redis.call('HSET', KEYS[1], field .. '.refusals', kept .. ARGV[2] .. '\n')
end
return false
