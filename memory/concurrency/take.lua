-- Gives a task a place, if there is one for it: those that wait and came before go first.
-- KEYS: see places
-- ARGV: now_ms or nothing, task, limit, lease_ms, arrival, worker, token, mark, marks of tasks above it ...
--   A place with the token - is kept for any run of its task.
-- Returns: {1}: it holds a place; {2, ms}: another worker runs it, for that long; {3}: a task above it holds a place;
--   {0, ms, rank}: no place, look again then; how many go before it beyond those whose turn it is
-- include ../budgets/clock
-- include places
local run = ARGV[6] .. ' ' .. ARGV[7] .. ' ' .. ARGV[8]
local own = redis.call('HGET', runs, name)
if own then
  local worker, token = string.match(own, '^(%S+) (%S+)')
  if worker ~= ARGV[6] and token ~= '-' then return {2, tonumber(redis.call('ZSCORE', held, name)) - now} end
  hold(run)
  return {1}
end
if ARGV[9] then
  local above = {}
  for i = 9, #ARGV do above[ARGV[i]] = true end
  local all = redis.call('HGETALL', runs)
  for i = 2, #all, 2 do
    if above[string.match(all[i], '^%S+ %S+ (.*)$')] then return {3} end
  end
end
local rank = ahead(ARGV[5])
if rank >= free() then return {0, look(rank - free()), rank - free()} end
hold(run)
return {1}
