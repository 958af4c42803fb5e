-- Reads a page of runs of one agent, the highest scores first.
-- KEYS: the list, open ones or those of a user; rows
-- ARGV: the highest score, the lowest one, each as a bound of ZRANGE; how many to pass over, how many to read
-- Returns: for each run its id, its score and its row, nil without one; nothing where the keys hold other types
local found = redis.pcall('ZRANGE', KEYS[1], ARGV[1], ARGV[2], 'BYSCORE', 'REV', 'LIMIT', ARGV[3], ARGV[4], 'WITHSCORES')
if found.err then return {} end
local ids = {}
for at = 1, #found, 2 do ids[#ids + 1] = found[at] end
if #ids == 0 then return {} end
local rows = redis.pcall('HMGET', KEYS[2], unpack(ids))
if rows.err then return {} end
local runs = {}
for at, id in ipairs(ids) do
  runs[#runs + 1] = id
  runs[#runs + 1] = found[2 * at]
  runs[#runs + 1] = rows[at]
end
return runs
