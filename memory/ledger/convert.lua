-- Moves a task from layout 1 to layout 2, whole: entry, reports with the time that is left of them, journal and children.
-- KEYS: task, its children, entry, pointer
-- ARGV: agent, or nothing for a task of which nothing but a wish to cancel it is known; for each generation that has a
--   report: its number and when it ended, in ms
-- Returns: 1: done; 0: it is not in layout 1; -1: nobody is known to whom it belongs; -2: it is in both layouts
local task, children, entry, pointer = unpack(KEYS)
if redis.call('TYPE', task).ok ~= 'hash' then return 0 end
if ARGV[1] ~= '' and redis.call('EXISTS', entry) == 1 then return -2 end
local left = redis.call('PTTL', task)
local fields = redis.call('HGETALL', task)
local ended, moved, newest, known = {}, {}, 1, {}
for at = 2, #ARGV, 2 do ended[ARGV[at]] = ARGV[at + 1] end
for at = 1, #fields, 2 do
  local name, number = string.match(fields[at], '^([a-z_]+):(%d+)$')
  known[fields[at]] = fields[at + 1]
  if number and tonumber(number) > newest then newest = tonumber(number) end
  if name ~= 'cancel' and ARGV[1] == '' then return -1 end
end
local function live(key) if left > 0 then redis.call('PEXPIRE', key, left) end end
local g = string.format('%.0f', newest)
local wish = known['cancel:' .. g] or known['state:' .. g] == 'cancelled' and 'it was cancelled'
redis.call('SET', pointer, ARGV[1] .. (wish and '!' .. g .. '!' .. wish or ''))
live(pointer)
if ARGV[1] == '' then return redis.call('UNLINK', task) end
-- include now
-- include error_of
for name, value in pairs(known) do
  local number = string.match(name, '^report:(%d+)$')
  if number then
    redis.call('SET', entry .. ':report:' .. number, value)
    live(entry .. ':report:' .. number)
    redis.call('HSET', entry, 'finished_at:' .. number, ended[number] or string.format('%.0f', now))
    local why = known['state:' .. number] ~= 'completed' and error_of(value)
    if why then redis.call('HSET', entry, 'error:' .. number, why) end
  else
    redis.call('HSET', entry, name, value)
  end
end
redis.call('UNLINK', task)
live(entry)
for from, to in pairs({
  [task .. ':steps'] = entry .. ':steps',
  [task .. ':results'] = entry .. ':results',
  [children] = entry .. ':children',
}) do
  if redis.call('EXISTS', from) == 1 then redis.call('RENAME', from, to) end
end
return 1
