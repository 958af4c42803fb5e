-- Stores plans and the documents that they changed, all or nothing.
-- KEYS: plans, document and log of each, the claim's six
-- ARGV: number of documents, number of plans, log entries to keep, 1 when rows are closed; of each plan its id, record, how
--   many documents it changed, plan it takes back; of each document its resource, revision and `born` as they were found,
--   revision, `born`, form and body to write (no revision: it was only read), number of log entries, and of each the place
--   of its plan in the list and the entry; then `memory.queues.claims.closing_arguments`. Records and entries are JSON
--   objects without their first brace: the number of the plan goes before them.
-- Returns: {done}; {known, ids}: all plans are stored, only rows were closed; {lease}: the claim has ended;
--   {partly, ids}: some plans are stored; {moved, resources}: documents are not as they were found
-- Every key is read before the first is written: a key that holds another type fails with nothing written.
-- include ../../queues/close_rows
-- include drop
local plans, count, planned, keep = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local documents = 5 + 4 * planned
local rows, closing = 2 + 2 * count, documents
for _ = 1, count do closing = closing + 8 + 2 * math.max(0, tonumber(ARGV[closing + 7])) end
local claimed = ARGV[4] == '1'
if claimed and not lease_held(rows, closing) then return {'lease'} end

local known = {}
for at = 5, documents - 1, 4 do
  if redis.call('HEXISTS', plans, ARGV[at]) == 1 then known[#known + 1] = ARGV[at] end
end
if #known > 0 and #known < planned then return {'partly', unpack(known)} end
if #known > 0 then
  if claimed then close_rows(rows, closing) end
  return {'known', unpack(known)}
end

local moved, at = {}, documents
for index = 1, count do
  local stored = redis.call('HMGET', KEYS[2 * index], 'revision', 'born')
  if (stored[1] or '0') ~= ARGV[at + 1] or (stored[2] or '') ~= ARGV[at + 2] then moved[#moved + 1] = ARGV[at] end
  redis.call('LLEN', KEYS[2 * index + 1])
  at = at + 8 + 2 * tonumber(ARGV[at + 7])
end
if #moved > 0 then return {'moved', unpack(moved)} end

local last = tonumber(redis.call('HGET', plans, '#last') or '0')
local resources = redis.call('HGET', plans, '#resources') or ''
local function numbered(place, text) return string.format('{"number":%.0f,', last + place) .. text end
for place = 1, planned do
  local own = 1 + 4 * place
  local id, undone = ARGV[own], ARGV[own + 3]
  redis.call('HSET', plans, id, numbered(place, ARGV[own + 1]))
  if tonumber(ARGV[own + 2]) > 1 then redis.call('HSET', plans, id .. '#', ARGV[own + 2]) end
  if undone ~= '' and redis.call('HEXISTS', plans, undone) == 1 then redis.call('HSET', plans, undone .. '!', id) end
end

at = documents
for index = 1, count do
  local document, log, entries = KEYS[2 * index], KEYS[2 * index + 1], tonumber(ARGV[at + 7])
  if ARGV[at + 3] ~= '' then
    redis.call('HSET', document, 'revision', ARGV[at + 3], 'born', ARGV[at + 4], 'form', ARGV[at + 5],
      'body', ARGV[at + 6])
    for entry = at + 8, at + 7 + 2 * entries, 2 do
      redis.call('RPUSH', log, numbered(tonumber(ARGV[entry]), ARGV[entry + 1]))
    end
    local over = redis.call('LLEN', log) - keep
    if over > 0 then drop_oldest(plans, log, over) end
    if ARGV[at + 1] == '0' then resources = resources .. ' ' .. ARGV[at] end
  end
  at = at + 8 + 2 * entries
end
if planned > 0 then
  redis.call('HSET', plans, '#last', string.format('%.0f', last + planned), '#resources', resources)
end
if claimed then close_rows(rows, closing) end
return {'done'}
