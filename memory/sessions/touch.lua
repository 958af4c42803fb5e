-- Functions for every script that changes a session; KEYS[1] to KEYS[8] are the first of `memory.keys.SessionKeys`.
--
--   session_mend()     removes those of the eight keys that hold another type, as everything that writes begins.
--   touch(now)         the session was updated at *now*, as it is stored; nothing means now. All eight keys get its
--                      time to live, or none while its state is 'running'. Call it last; the root has to exist.
-- include calls
local function session_mend()
  for at = 1, 8 do
    local kind = redis.call('TYPE', KEYS[at]).ok
    if kind ~= 'none' and kind ~= (at == 4 and 'set' or 'hash') then redis.call('DEL', KEYS[at]) end
  end
end

local function touch(now)
  redis.call('HSET', KEYS[1], 'updated_at', now or session_ms(session_now()))
  local told = redis.call('HMGET', KEYS[1], 'state', 'ttl_ms')
  for at = 1, 8 do
    if told[1] == 'running' then
      redis.call('PERSIST', KEYS[at])
    else
      redis.call('PEXPIRE', KEYS[at], told[2] or 3600000)
    end
  end
end
