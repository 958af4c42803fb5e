-- Removes a record.
-- KEYS: records, states, due, owned, made
-- ARGV: id, "owner:id", "maker:id"
-- Returns: 1: it was there; 0: it was not
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('ZREM', KEYS[4], ARGV[2])
redis.call('ZREM', KEYS[5], ARGV[3])
return redis.call('HDEL', KEYS[1], ARGV[1])
