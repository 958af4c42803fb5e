-- Defines `newest`: the highest generation of the entry `key`, 0 without any.
local newest = 0
for _, field in ipairs(redis.call('HKEYS', key)) do
  local number = tonumber(string.match(field, '^[a-z_]+:(%d+)$') or '0')
  if number > newest then newest = number end
end
