#!lua flags=allow-oom
-- needs:
-- Notes a version of the layout, unless that or a later one is there. Gives the version before.
-- ARGV: time, version, the oldest code that may work with it.
local key = T .. 'schema'
local before = tonumber(ask('HGET', key, 'version') or 0)
if before < tonumber(ARGV[2]) then
  call('HSET', key, 'version', ARGV[2], 'oldest', ARGV[3], 'at', now)
end
return before
