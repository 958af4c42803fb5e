-- Functions on entries: `expiry_of` and `is_living` a head, `remove` a key, `keys_of_entries`.
local function expiry_of(head)
  return tonumber(string.match(head, '^(%d+):') or '1')
end

local function is_living(head, now)
  local expires = head and expiry_of(head)
  return expires and (expires == 0 or expires > now)
end

local function remove(key)
  redis.call('HDEL', KEYS[3], key)
  return redis.call('HDEL', KEYS[2], ':' .. key, key) > 0
end

local function keys_of_entries()
  local found = {}
  for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
    if string.sub(field, 1, 1) ~= ':' then found[#found + 1] = field end
  end
  return found
end
