-- Reads how far a generation of a task is, without its bodies.
-- KEYS: of entry.lua
-- ARGV: of entry.lua, generation
-- Returns: state, attempts, what it waits for, 1 when it is to be cancelled, and when it is due; nothing where it is not known
-- include entry
-- include pointer
local g = ':' .. ARGV[1]
local found = redis.pcall('HMGET', key, 'state' .. g, 'attempts' .. g, 'waits_for' .. g, 'cancel' .. g, 'due_at' .. g)
local cancel = found[4] or wished == ARGV[1]
if found.err or not (found[1] or cancel) then return {} end
return {found[1], found[2], found[3], cancel and 1 or 0, found[5]}
