-- Counts things to an owner, all of them or none; those whose time is over go first.
-- KEYS: of the holdings
-- ARGV: owner, 1 where it may be refused, part of a store that owners have, and of that which others leave for one, the
--   bytes of `queue` and of `store`; for each thing: store, kind, id or '' to be kept together with others, bytes, bytes
--   that are set aside for its result, ms that it is kept
-- Returns: {}: counted; {store, bytes of the owner there, bytes it may have}: it was refused
-- include names
for _, thing in ipairs(redis.call('ZRANGE', UNTIL, '-inf', '(' .. whole(now), 'BYSCORE', 'LIMIT', 0, 100)) do drop(thing) end
local owner, part = ARGV[1], tonumber(ARGV[4])
local most = {queue = tonumber(ARGV[5]), store = tonumber(ARGV[6])}
local taken, more = {}, {queue = 0, store = 0}
for at = 7, #ARGV, 6 do
  local store, kind, id = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local bytes, aside, keep = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
  local thing, ends = kind .. ' ' .. id, now + keep
  if id == '' then thing, ends = together(kind, owner, keep) end
  local _, whose, had, had_aside = find(thing)
  if id == '' then bytes = bytes + had end
  -- What is there already and is another owner's stays theirs.
  if not whose or whose == owner then
    table.insert(taken, {thing, store, bytes, aside, ends})
    more[store] = more[store] + bytes - had
    more[STORE_OF_RESULTS] = more[STORE_OF_RESULTS] + aside - had_aside
  end
end
if ARGV[2] == '1' then
  for store, bytes in pairs(more) do
    local own = sum(store .. ' ' .. owner)
    local may = math.floor(part * (tonumber(ARGV[3]) * most[store] - (sum(store) - own)))
    if bytes > 0 and own + bytes > may then return {store, own, math.max(0, may)} end
  end
end
for _, one in ipairs(taken) do put(one[1], one[2], owner, one[3], one[4], one[5]) end
return {}
