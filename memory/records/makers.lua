-- Says whether *maker* has as many records in the set *made* as it may; drops those first of which *is_gone* says so.
local function has_most(made, maker, most, is_gone)
  local first, last = '[' .. maker .. ':', '(' .. maker .. ';'
  if redis.call('ZLEXCOUNT', made, first, last) < tonumber(most) then return false end
  -- A supervisor of 0.2 removes records, and knows no makers.
  for _, member in ipairs(redis.call('ZRANGEBYLEX', made, first, last)) do
    if is_gone(string.match(member, ':(.*)$')) then redis.call('ZREM', made, member) end
  end
  return redis.call('ZLEXCOUNT', made, first, last) >= tonumber(most)
end
