-- Reads the report of a generation.
-- KEYS: of entry.lua
-- ARGV: of entry.lua, generation
-- Returns: as report.lua
-- include entry
local g = ':' .. ARGV[1]
local read = redis.call('HMGET', key, 'report' .. g, 'finished_at' .. g, 'state' .. g, 'error' .. g)
-- include report
return stored
