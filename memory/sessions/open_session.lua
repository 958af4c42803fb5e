-- Begins a script that writes into a session; `known` is false where there is none.
-- include touch
-- include living_entries
session_mend()
local known = redis.call('EXISTS', KEYS[1]) == 1
