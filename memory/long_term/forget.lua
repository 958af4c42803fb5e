-- Removes an entry and its place among its neighbours.
-- Finds the place in the end of the entry, where `long_term.entries.encode` puts it; without one there are no neighbours.
-- KEYS: entry, hits, index
-- ARGV: how the keys of its neighbours begin, its member of the index
-- Returns: 1: removed; 0: it was not there
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' and not string.find(value.err, '^WRONGTYPE ') then return value end
if type(value) == 'string' then
  local frame, place = string.match(string.sub(value, -4096), '"near":{"frame":"(%w+)","place":"([%d.|E+-]+)"}}$')
  if frame then
    local near, fields = ARGV[1] .. frame, select(2, string.gsub(place, '|', '')) + 1
    redis.call('ZREM', near, place)
    redis.call('ZREM', near .. ':until', place)
    for number = 2, fields do redis.call('ZREM', near .. ':' .. number, place) end
    if redis.call('EXISTS', near) == 0 then
      redis.call('ZREM', KEYS[3], string.match(near, '}:(.*)$') .. ' ' .. fields)
    end
  end
end
redis.call('ZREM', KEYS[3], ARGV[2])
redis.call('UNLINK', KEYS[2])
return redis.call('UNLINK', KEYS[1])
