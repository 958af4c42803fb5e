-- Appends rows, each once by its id.
-- KEYS: the six of `memory.keys.QueueKeys`: rows, pending, states, closed, lease, numbers
-- ARGV: keep_ms; of each row its id, body, and trace or nothing
-- Returns: how many were new
-- include close_rows
-- include put_rows
demand_types(1)
return put_rows(1, tonumber(ARGV[1]), 2, #ARGV)
