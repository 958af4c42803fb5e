-- Removes all documents of a user, their logs, plans and reads.
-- KEYS: plans, reads, then document and log of each
-- Returns: counts of documents, log entries, plans and reads
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
