-- Keeps the refusal of an answer with its wait; takes the answer away if it was stored. Where there are too many, of all
-- or of one author, the author of the most loses the oldest, and it is counted: so one who is refused again and again,
-- or in many names, leaves the entries of others where they are.
-- KEYS: of entry.lua
-- ARGV: of entry.lua, slot, refusal, most bytes of all, most refusals of one author, the answer as it is stored, if it is
-- Returns: nil
-- include entry
local field = 'wait.' .. ARGV[1]
if ARGV[5] and redis.call('HGET', KEYS[1], field .. '.answer') == ARGV[5] then
  redis.call('HDEL', KEYS[1], field .. '.answer')
end
if redis.call('HEXISTS', KEYS[1], field) == 0 then return false end
-- What was stored by nobody who is known is one author's, whatever names it bears.
local unknown = {forged = true, altered = true, unreadable = true}
local lines, of, size, left_out = {}, {}, 0, 0
local function add(line)
  local is_read, refusal = pcall(cjson.decode, line)
  if not is_read or type(refusal) ~= 'table' or type(refusal.by) ~= 'string' then
    left_out = left_out + 1
    return
  end
  local by = unknown[refusal.why] and 'unknown' or 'by ' .. refusal.by
  -- Many hold links of one role, and one person may try another's.
  if not unknown[refusal.why] and type(refusal.link) == 'string' then by = 'link ' .. refusal.link end
  table.insert(lines, {line = line, by = by})
  of[by] = (of[by] or 0) + 1
  size = size + #line + 1
end
for line in string.gmatch(redis.call('HGET', KEYS[1], field .. '.refusals') or '', '[^\n]+') do add(line) end
add(ARGV[2])
local newest = lines[#lines]
while #lines > 0 and (size > tonumber(ARGV[3]) or of[newest.by] > tonumber(ARGV[4])) do
  -- The newest goes where it is one of the many of its author, or where none has more than it.
  local most = newest.by
  if of[most] <= tonumber(ARGV[4]) then
    for _, each in ipairs(lines) do if of[each.by] > of[most] then most = each.by end end
  end
  local at = #lines
  if most ~= newest.by then
    at = 1
    while lines[at].by ~= most do at = at + 1 end
  end
  local gone = table.remove(lines, at)
  of[gone.by] = of[gone.by] - 1
  size = size - #gone.line - 1
  left_out = left_out + 1
  if gone == newest then break end
end
local kept = {}
for _, each in ipairs(lines) do table.insert(kept, each.line .. '\n') end
redis.call('HSET', KEYS[1], field .. '.refusals', table.concat(kept))
if left_out > 0 then redis.pcall('HINCRBY', KEYS[1], field .. '.left_out', left_out) end
return false
