-- Stores a record: a new one, or the next version of one that is there.
-- KEYS: records, states, due, owned, made
-- ARGV: id, record, its version, state, ms since 1970 when to look at it or nothing, "owner:id", first and last possible
--   member of the owner, how many each owner may have, how many there may be, its maker or
--   nothing, how many each maker may have
-- Returns: 1: done; 0: another version is there; -1: the owner has too many; -2: there are too many; -3: the maker has
-- include makers
local id, version, maker = ARGV[1], tonumber(ARGV[3]), ARGV[11]
local found = redis.call('HGET', KEYS[1], id)
if found then
  if found == ARGV[2] then return 1 end
  if cjson.decode(found).version ~= version - 1 then return 0 end
else
  local function is_gone(other) return redis.call('HEXISTS', KEYS[1], other) == 0 end
  if version ~= 1 then return 0 end
  if redis.call('ZLEXCOUNT', KEYS[4], ARGV[7], ARGV[8]) >= tonumber(ARGV[9]) then return -1 end
  if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[10]) then return -2 end
  if maker ~= '' and has_most(KEYS[5], maker, ARGV[12], is_gone) then return -3 end
end
-- Of a record that is there the maker may be another one now.
if maker ~= '' then redis.call('ZADD', KEYS[5], 0, maker .. ':' .. id) end
redis.call('HSET', KEYS[1], id, ARGV[2])
redis.call('HSET', KEYS[2], id, ARGV[4])
redis.call('ZADD', KEYS[4], 0, ARGV[6])
if ARGV[5] == '' then redis.call('ZREM', KEYS[3], id) else redis.call('ZADD', KEYS[3], ARGV[5], id) end
return 1
