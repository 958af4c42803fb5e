-- Reads how far a generation of a task is, without its bodies.
-- KEYS: task
-- ARGV: generation
-- Returns: state, attempts, what it waits for, 1 when it is to be cancelled, and when it is due; nothing where it is not known
local g = ':' .. ARGV[1]
local found = redis.pcall('HMGET', KEYS[1], 'state' .. g, 'attempts' .. g, 'waits_for' .. g, 'cancel' .. g,
  'due_at' .. g)
if found.err or not (found[1] or found[4]) then return {} end
return {found[1], found[2], found[3], found[4] and 1 or 0, found[5]}
