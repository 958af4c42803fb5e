-- Counts who said what leaves the window, each message once, before it can be trimmed.
-- Seconds since 1970 of a turn, whose time is written out, or of a world.
local function moment(told)
  if type(told.time) == 'number' then return told.time end
  local y, m, d, hours, minutes, seconds, zone =
    string.match(tostring(told.at), '^(%d+)-(%d+)-(%d+)T(%d+):(%d+):([%d.]+)(.*)$')
  if not y then return nil end
  y, m, d = tonumber(y), tonumber(m), tonumber(d)
  if m <= 2 then y = y - 1 end
  local era = math.floor(y / 400)
  local of_era = y - era * 400
  local of_year = math.floor((153 * ((m + 9) % 12) + 2) / 5) + d - 1
  local days = era * 146097 + of_era * 365 + math.floor(of_era / 4) - math.floor(of_era / 100) + of_year - 719468
  local sign, east, rest = string.match(zone, '^([+-])(%d%d):?(%d%d)$')
  local offset = sign and (tonumber(east) * 3600 + tonumber(rest) * 60) * (sign == '-' and -1 or 1) or 0
  return math.max(0, days * 86400 + tonumber(hours) * 3600 + tonumber(minutes) * 60 + tonumber(seconds) - offset)
end

local function speaker_of(told)
  local speaker = told.speaker
  if speaker == 'assistant' and type(told.agent_id) == 'string' then speaker = told.agent_id end
  return type(speaker) == 'string' and speaker or 'others'
end

local function fold(upto)
  local folded = tonumber(redis.call('HGET', DIGEST, 'count') or '0')
  if upto <= folded then return folded end
  local first, by, most = total - left, {}, 200
  local since, until_ = unpack(redis.call('HMGET', DIGEST, 'since', 'until'))
  since, until_ = tonumber(since or 'x'), tonumber(until_ or 'x')
  if first > folded then by['others'] = math.min(first, upto) - folded end
  local from = math.max(folded, first)
  local bodies = upto > from and redis.call('LRANGE', SAID, from - first, upto - first - 1) or {}
  for _, body in ipairs(bodies) do
    local read, told = pcall(cjson.decode, body)
    if not read or type(told) ~= 'table' then told = {} end
    local speaker, at = speaker_of(told), moment(told)
    by[speaker] = (by[speaker] or 0) + 1
    if at then since, until_ = math.min(since or at, at), math.max(until_ or at, at) end
  end
  for speaker, count in pairs(by) do
    local field = 'by:' .. speaker
    if redis.call('HEXISTS', DIGEST, field) == 0 and redis.call('HLEN', DIGEST) > most then field = 'by:others' end
    redis.call('HINCRBY', DIGEST, field, whole(count))
  end
  redis.call('HSET', DIGEST, 'count', whole(upto))
  if since then
    redis.call('HSET', DIGEST, 'since', string.format('%.17g', since), 'until', string.format('%.17g', until_))
  end
  return upto
end
