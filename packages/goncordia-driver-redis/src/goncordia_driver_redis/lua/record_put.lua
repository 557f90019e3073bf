#!lua flags=allow-oom
-- needs:
-- Writes or deletes a record if its version is the expected one. A put with the token of the last
-- put is done already. One counter serves all names: a version never comes again.
-- ARGV: time, name, expected version, token, then the value, or nothing to delete it.
-- Answers: whether it is done, and the version now.
local key = T .. 'k:' .. ARGV[2]
local version, token = unpack(ask('HMGET', key, 'n', 't'))
local value = ARGV[5]
if token == ARGV[4] then return { 1, tonumber(version) } end
if not version and not value then return { 1, 0 } end
version = tonumber(version or 0)
if version ~= tonumber(ARGV[3]) then return { 0, version } end
expect('ZCARD', T .. 'kn')
if not value then
  call('ZREM', T .. 'kn', ARGV[2])
  call('DEL', key)
  return { 1, 0 }
end
expect('STRLEN', T .. 'kv')
version = call('INCR', T .. 'kv')
call('HSET', key, 'v', value, 'n', version, 't', ARGV[4])
call('ZADD', T .. 'kn', 0, ARGV[2])
return { 1, version }
