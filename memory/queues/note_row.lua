-- Stores a note with a claimed row.
-- KEYS: the six of `memory.keys.QueueKeys`: rows, pending, states, closed, lease, numbers
-- ARGV: holder, fence, id, note
-- Returns: 1: noted; 0: the claim was lost, or the row is not waiting
-- include close_rows
if not lease_held(1, 1) or not redis.call('ZSCORE', KEYS[2], ARGV[3]) then return 0 end
redis.call('HSET', KEYS[3], 'n:' .. ARGV[3], ARGV[4])
return 1
