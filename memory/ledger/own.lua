-- Takes over the wish of a process that could not reach the entry, and lets the pointer lead to it. What is wished of a
-- generation before `generation` stays in the entry alone: whoever reads the pointer asks about the newest.
-- Defines `point(wish)`, which writes the pointer; `prolong(ms, keys)`; `keep(ms)`, for how long at least all is kept
-- that is known of the task, but for reports, and for children in layout 1
-- include pointer
local function point(wish)
  local left = redis.call('PTTL', key)
  redis.call('SET', pointer, agent .. wish)
  if left > 0 then redis.call('PEXPIRE', pointer, left) end
end
local function prolong(ms, places)
  for _, each in ipairs(places) do
    if redis.call('PTTL', each) < tonumber(ms) then redis.call('PEXPIRE', each, string.format('%.0f', ms)) end
  end
end
local function keep(ms)
  prolong(ms, {key, key .. ':steps', key .. ':results'})
  if pointer then prolong(ms, {pointer, key .. ':children'}) end
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
