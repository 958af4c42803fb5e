-- Reads all that is known of a task, each report as the field that it is in layout 1, and what the pointer wishes as its own.
-- KEYS: of entry.lua
-- ARGV: of entry.lua
-- Returns: fields and their values
-- include entry
-- include pointer
local fields = redis.call('HGETALL', key)
if pointer then
  local has_wish, count = false, #fields
  for at = 1, count, 2 do
    local number = string.match(fields[at], '^finished_at:(%d+)$')
    local report = number and redis.call('GET', key .. ':report:' .. number)
    if report then
      table.insert(fields, 'report:' .. number)
      table.insert(fields, report)
    end
    has_wish = has_wish or wished and fields[at] == 'cancel:' .. wished
  end
  if wished and not has_wish then
    table.insert(fields, 'cancel:' .. wished)
    table.insert(fields, why)
  end
end
return fields
