-- Lets a waiter that was woken be so again, or forgets one that waits no more.
-- KEYS: waiters, looks, freed: see wake
-- ARGV: now_ms or nothing, waiter, what to do: "noting": wake it again at once where it may not have noted yet that it
--   waits; "forget"; else ms after which it is woken again
-- Returns: nil
-- include clock
-- include checks
-- include waiters
holds(KEYS[1], 'hash')
holds(KEYS[2], 'zset')
holds(KEYS[3], 'zset')
-- Ms for which a worker takes to note that its task waits. One that goes on without a model does not wait at all.
local NOTED = 5000
local waiter, wish = ARGV[2], ARGV[3]
local row = read_waiter(KEYS[1], waiter)
if row == false or wish == 'forget' then
  forget(waiter, KEYS[1], KEYS[2], KEYS[3])
elseif row and (wish ~= 'noting' or row.at + NOTED > now) then
  row.again = wish ~= 'noting' and now + tonumber(wish) or nil
  write_waiter(KEYS[1], waiter, row)
end
return false
