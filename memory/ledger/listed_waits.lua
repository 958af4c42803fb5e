-- Defines `listed`: the slots of the task KEYS[1] that the field `open_waits` names, behind the generation and the number of the run
-- that wrote it; false where there are none, or another run let the task wait since.
local listed, named = false, redis.call('HGET', KEYS[1], 'open_waits')
local generation, run, names = string.match(named or '', '^(%d+) (%d+)(.*)$')
if generation then
  local now = redis.call('HMGET', KEYS[1], 'state:' .. generation, 'attempts:' .. generation)
  if now[1] ~= 'waiting' or now[2] == run then
    listed = {}
    for slot in string.gmatch(names, '%S+') do listed[#listed + 1] = slot end
  end
end
