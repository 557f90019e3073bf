#!lua flags=no-writes
-- needs:
-- A record: its value and version, or nothing. ARGV: time, name.
return call('HMGET', T .. 'k:' .. ARGV[2], 'v', 'n')
