-- Takes over the wish of a process that could not reach the entry, and lets the pointer lead to it. What is wished of a
-- generation before `generation` stays in the entry alone: whoever reads the pointer asks about the newest.
-- Defines `point(wish)`, which writes the pointer; `keep(ms)`, for how long the entry and the pointer are kept
-- include pointer
local function point(wish)
  local left = redis.call('PTTL', key)
  redis.call('SET', pointer, agent .. wish)
  if left > 0 then redis.call('PEXPIRE', pointer, left) end
end
local function keep(ms)
  redis.call('PEXPIRE', key, string.format('%.0f', ms))
  if pointer then redis.call('PEXPIRE', pointer, string.format('%.0f', ms)) end
end
if wished then
  redis.call('HSETNX', key, 'cancel:' .. wished, why)
  if redis.call('PTTL', key) == -1 then redis.call('PEXPIRE', key, math.max(1, redis.call('PTTL', pointer))) end
  if tonumber(wished) < generation then
    point('')
  elseif pointed ~= agent then
    point('!' .. wished .. '!' .. why)
  end
elseif pointer and pointed ~= agent then
  point('')
end
