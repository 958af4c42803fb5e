-- Reads a wait, and what is known of the generation of its task.
-- KEYS: of entry.lua
-- ARGV: of entry.lua, slot, 1 with its assignment and trace
-- Returns: wait, answer, refusals, left_out, notices, state, report or "", cancel, attempts, assignment, trace, "" when it is withdrawn;
--   {} without one
-- include entry
-- include pointer
local field = 'wait.' .. ARGV[1]
local found = redis.call('HMGET', key, field, field .. '.answer', field .. '.refusals', field .. '.left_out', field .. '.notices')
local is_read, wait = pcall(cjson.decode, found[1] or '')
if not is_read or type(wait) ~= 'table' or type(wait.generation) ~= 'number' then return {} end
local g = ':' .. string.format('%.0f', wait.generation)
local function has(name) return redis.call('HEXISTS', key, name .. g) == 1 and '' or false end
local more = redis.call('HMGET', key, 'state' .. g, 'attempts' .. g)
local rest = {false, false}
if ARGV[2] == '1' then rest = redis.call('HMGET', key, 'assignment' .. g, 'trace' .. g) end
local report = has('report') or has('finished_at')
-- What is nil would end the reply.
local cancel = has('cancel') or (wished and ':' .. wished == g and '') or false
-- include withdrawn
return {found[1], found[2], found[3], found[4], found[5], more[1], report, cancel, more[2], rest[1], rest[2],
  withdrawn and '' or false}
