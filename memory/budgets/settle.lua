-- Settles a call, once: what it took goes to its accounts and into the books.
-- KEYS: calls, leases, book, tree or the book again, then its accounts
-- ARGV: now_ms or nothing, call, field, requests or nothing when it is not known what it took,
--   tokens, usd, input, output, cached, keep_ms, ms for which the provider wants nothing, requests and tokens that it
--   counts in this minute, each or nothing; then for each account: kind, measure
-- Returns: 1: settled; 0: it was before
-- include clock
-- include checks
-- include accounts
expire(KEYS[1], KEYS[2])
local call, field = ARGV[2], ARGV[3]
local record = read_call(KEYS[1], call)
if ARGV[4] == '' then
  if record and not record.lost then
    redis.call('ZADD', KEYS[2], 'XX', text(now), call)
    expire(KEYS[1], KEYS[2])
  end
  return 1
end
if record then
  if record.lost then redis.call('HINCRBY', record.book, field .. '|unconfirmed', text(-record.usd)) end
  close(call, record, {requests = tonumber(ARGV[4]), tokens = tonumber(ARGV[5]), usd = tonumber(ARGV[6]), at_once = 1})
  redis.call('HDEL', KEYS[1], call)
  redis.call('ZREM', KEYS[2], call)
  local blocked, others = tonumber(ARGV[11] or ''), {requests = tonumber(ARGV[12] or ''), tokens = tonumber(ARGV[13] or '')}
  for _, account in ipairs(record.accounts) do
    if account[2] == 'w' then
      if blocked then redis.call('HSET', account[1], 'blocked', text(now + blocked)) end
      local used = others[account[3]]
      local known = used and redis.call('HMGET', account[1], 't', 'r')
      if used and used > tonumber(known[1] or '0') + tonumber(known[2] or '0') then
        count_rate(account[1], now, used - tonumber(known[1] or '0') - tonumber(known[2] or '0'))
      end
    end
  end
end
if redis.call('ZADD', KEYS[2], 'NX', text(now + 60 * MINUTE), 'done:' .. call) == 0 then return 0 end
if not record then
  -- Nothing was reserved, or the store has lost it: it was spent all the same.
  local amounts = {requests = tonumber(ARGV[4]), tokens = tonumber(ARGV[5]), usd = tonumber(ARGV[6])}
  for i = 14, #ARGV, 2 do
    local key, kind, amount = KEYS[5 + (i - 14) / 2], ARGV[i], amounts[ARGV[i + 1]]
    if kind == 'w' then count_rate(key, now, amount) end
    if kind == 'c' then redis.call('HINCRBY', key, 's', text(amount)) end
  end
end
if ARGV[4] == '0' then return 1 end
local amounts = {calls = ARGV[4], usd = ARGV[6], input = ARGV[7], output = ARGV[8], cached = ARGV[9]}
for name, amount in pairs(amounts) do
  if amount ~= '0' then
    redis.call('HINCRBY', KEYS[3], field .. '|' .. name, amount)
    if KEYS[4] ~= KEYS[3] then redis.call('HINCRBY', KEYS[4], name, amount) end
  end
end
for i = 3, 4 do redis.call('PEXPIRE', KEYS[i], ARGV[10]) end
return 1
