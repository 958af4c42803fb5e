-- Removes all that is known of a task.
-- KEYS: of entry.lua, and its children in layout 1 where that is read
-- ARGV: of entry.lua
-- Returns: 1: it was known; 0: it was not
-- include entry
for _, field in ipairs(pointer and redis.call('HKEYS', key) or {}) do
  local number = string.match(field, '^finished_at:(%d+)$')
  if number then redis.call('UNLINK', key .. ':report:' .. number) end
end
if pointer then redis.call('UNLINK', pointer) end
redis.call('UNLINK', key .. ':steps', key .. ':results', pointer and key .. ':children' or KEYS[2])
return redis.call('UNLINK', key)
