-- Reads hashes of a story at one moment.
-- KEYS: base, then any
-- ARGV: for each key how many fields, then these; -1: all; -2: names; -3: how many there are
-- Returns: what each key holds; nil where there is no story
local function is_other(index)
  local kind = redis.call('TYPE', KEYS[index]).ok
  return kind ~= 'none' and kind ~= 'hash'
end
if is_other(1) or redis.call('HEXISTS', KEYS[1], 'revision') == 0 then return false end
local found, at = {}, 1
for index = 1, #KEYS do
  local count = tonumber(ARGV[at])
  if is_other(index) then
    found[index] = count == -3 and 0 or {}
    for place = 1, math.min(count, #ARGV) do found[index][place] = false end
    at = at + math.max(0, count)
  elseif count == -1 then
    found[index] = redis.call('HGETALL', KEYS[index])
  elseif count == -2 then
    found[index] = redis.call('HKEYS', KEYS[index])
  elseif count == -3 then
    found[index] = redis.call('HLEN', KEYS[index])
  else
    found[index] = redis.call('HMGET', KEYS[index], unpack(ARGV, at + 1, at + count))
    at = at + count
  end
  at = at + 1
end
return found
