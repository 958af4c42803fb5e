-- Closes rows of a claim.
-- KEYS: the six of `memory.keys.QueueKeys`: rows, pending, states, closed, lease, numbers
-- ARGV: `memory.queues.claims.closing_arguments`
-- Returns: 1: done; 0: the claim was lost
-- include close_rows
if not lease_held(1, 1) then return 0 end
close_rows(1, 1)
return 1
