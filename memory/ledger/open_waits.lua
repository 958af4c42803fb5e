-- Names the waits that were open when a run of a task last ended in them, in the order in which it came to them.
-- KEYS: of entry.lua
-- ARGV: of entry.lua, most fields of an entry that are looked through where a worker of 0.2 let it wait, which keeps no list of them
-- Returns: slots
-- include entry
local slots = {}
if redis.call('TYPE', key).ok ~= 'hash' then return slots end
-- include listed_waits
if listed then return listed end
if redis.call('HLEN', key) > tonumber(ARGV[1]) then return slots end
for _, field in ipairs(redis.call('HKEYS', key)) do
  local slot = string.match(field, '^wait%.([^.]+)$') or string.match(field, '^wait%.(signal%.[^.]+)$')
  if slot and redis.call('HEXISTS', key, field .. '.answer') == 0 then slots[#slots + 1] = slot end
end
return slots
