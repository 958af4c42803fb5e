"""The Lua of JSON memory documents: each script touches one hash tag, that of a user.

| script | KEYS | ARGV | returns |
|---|---|---|---|
| READ | plans, then document and log of each | entries wanted, then `revision born` known of each | see below |
| ENTRIES | document and log of each | revision of each | the log entry that led to that revision, or nil, each |
| COMMIT | plans, document and log of each, the claim's six | see below | {word, ids or resources, ...} |
| FORGET | plans, reads, then document and log of each | | counts of documents, log entries, plans and reads |

READ returns {resources, document, ...}: which resources are stored, parted by spaces, and of each document asked for
{revision, born, form, log entries, body}: false where it is not stored, and no body where the one known is the one
stored. As many of the last log entries come along as are wanted, -1 for all.

COMMIT takes: how many documents, how many plans, log entries to keep, 1 when rows are closed; of each plan its id, its
record, how many documents it changed, which plan it takes back; of each document its resource, revision and `born` as
they were found, revision, `born`, form and body to write (no revision: it was only read), how many log entries, and of
each the place of its plan in the list and the entry; the words of `memory.queues.claims.closing_arguments`. Records and
entries are JSON objects without their first brace: the number of the plan goes before them.

It says `done`, `known` (all plans are stored already: only rows were closed), or why nothing was written: `lease` (the
claim has ended), `partly` (some plans are stored already) or `moved` (documents are not as they were found). Every key
is read before the first is written: a key that holds another type fails with nothing written.

Beside the plans, under names that no plan id can have, their hash keeps `#last` (the number of the last plan),
`#resources` (which documents are stored), `id#` (in how many logs a plan of several documents still stands) and `id!`
(the plan that took it back). A plan is dropped with its last log entry.
"""

from memory.queues.scripts import CLOSE_ROWS
from memory.scripts import register

READ = register(
    """
local wanted, found = tonumber(ARGV[1]), {redis.call('HGET', KEYS[1], '#resources') or ''}
for at = 2, #KEYS, 2 do
  local stored = redis.call('HMGET', KEYS[at], 'revision', 'born', 'form')
  if stored[1] then
    local entries = {}
    if wanted ~= 0 then entries = redis.call('LRANGE', KEYS[at + 1], wanted < 0 and 0 or -wanted, -1) end
    stored[4] = entries
    local held = stored[1] .. ' ' .. (stored[2] or '')
    if ARGV[1 + at / 2] ~= held then stored[5] = redis.call('HGET', KEYS[at], 'body') end
    found[1 + at / 2] = stored
  else
    found[1 + at / 2] = false
  end
end
return found
""",
    "read",
)

ENTRIES = register(
    """
local found = {}
for at = 1, #ARGV do
  local last = tonumber(redis.call('HGET', KEYS[2 * at - 1], 'revision') or '0')
  local back = tonumber(ARGV[at]) - last - 1
  found[at] = back < 0 and redis.call('LINDEX', KEYS[2 * at], back)
end
return found
""",
    "read",
)

_DROP = """
local function drop_oldest(plans, log, over)
  for _, entry in ipairs(redis.call('LRANGE', log, 0, over - 1)) do
    local id = string.match(entry, '"plan":"([%w_-]+)"')
    if id and redis.call('HEXISTS', plans, id .. '#') == 1 and redis.call('HINCRBY', plans, id .. '#', -1) > 0 then
      id = nil
    end
    if id then redis.call('HDEL', plans, id, id .. '#', id .. '!') end
  end
  redis.call('LTRIM', log, over, -1)
end
"""

COMMIT = register(
    CLOSE_ROWS
    + _DROP
    + """
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
""",
    "refuse",
)

FORGET = register(
    """
local documents, entries, plans = 0, 0, 0
for at = 3, #KEYS, 2 do
  documents = documents + redis.call('EXISTS', KEYS[at])
  entries = entries + redis.call('LLEN', KEYS[at + 1])
end
for _, id in ipairs(redis.call('HKEYS', KEYS[1])) do
  if not string.find(id, '[#!]') then plans = plans + 1 end
end
local reads = redis.call('HLEN', KEYS[2])
for at = 1, #KEYS do redis.call('UNLINK', KEYS[at]) end
return {documents, entries, plans, reads}
""",
    "finish",
)
