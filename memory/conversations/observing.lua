-- Removes keys of another type.
for at, meant in ipairs({'list', 'zset'}) do
  local kind = redis.call('TYPE', KEYS[at]).ok
  if kind ~= 'none' and kind ~= meant then redis.call('DEL', KEYS[1], KEYS[2]) end
end
