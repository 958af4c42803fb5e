-- Defines `drop_oldest`: a plan is dropped with its last log entry.
local function drop_oldest(plans, log, over)
  for _, entry in ipairs(redis.call('LRANGE', log, 0, over - 1)) do
    local id = string.match(entry, '"plan":"([%w_-]+)"')
    if id and redis.call('HEXISTS', plans, id .. '#') == 1 and redis.call('HINCRBY', plans, id .. '#', -1) > 0 then
      id = nil
    end
    if id then redis.call('HDEL', plans, id, id .. '#', id .. '!') end
  end
  redis.call('LTRIM', log, over, -1)
end
