-- Appends rows to one table and closes those of another one in which they were found, all or nothing.
-- KEYS: the six of `memory.keys.QueueKeys` of the table that is appended to; those of the claim
-- ARGV: keep_ms of the first; number of new rows, of each its id, body, and trace or nothing;
--   `memory.queues.claims.closing_arguments`
-- Returns: 1: done; 0: the claim was lost
-- include close_rows
-- include put_rows
local closing = 3 + 3 * tonumber(ARGV[2])
if not lease_held(7, closing) then return 0 end
demand_types(1)
demand_types(7)
put_rows(1, tonumber(ARGV[1]), 3, closing - 1)
close_rows(7, closing)
return 1
