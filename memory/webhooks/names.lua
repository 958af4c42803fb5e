-- Gives the keys of the outbox their names; a state is "NEXT SINCE ATTEMPTS PROBLEM", its times of 13 digits, in ms.
local records, states, queue, hosts, failed, callbacks, owned, expiry, made = unpack(KEYS)
local function place(host, state, id) return host .. ' ' .. string.sub(state, 1, 13) .. ' ' .. id end
local function drop(id)
  local record, state = redis.call('HGET', records, id), redis.call('HGET', states, id)
  local callback = redis.call('HGET', callbacks, id)
  local known = cjson.decode(record or callback or '{}')
  if known.owner and known.owner ~= '' then redis.call('ZREM', owned, known.owner .. ':' .. id) end
  if known.maker and known.maker ~= '' then redis.call('ZREM', made, known.maker .. ':' .. id) end
  if callback then
    redis.call('ZREM', expiry, id)
    return redis.call('HDEL', callbacks, id)
  end
  if not record then return 0 end
  redis.call('ZREM', queue, place(known.host, state, id))
  redis.call('ZREM', failed, id)
  redis.call('HDEL', states, id)
  return redis.call('HDEL', records, id)
end
