#!lua flags=allow-oom
-- needs:
-- Opens a session under an id that was never used; for a used one it changes nothing. It works when
-- memory is full, else no worker could start that would empty it.
-- ARGV: time, session, worker, lease in microseconds.
local key = T .. 's:' .. ARGV[2]
if call('EXISTS', key) == 1 then return end
expect('ZCARD', T .. 'so')
call('HSET', key, 'worker', ARGV[3], 'lease', ARGV[4], 'opened', now, 'beat', now, 'since', now,
  'open', 1)
call('ZADD', T .. 'so', now + ARGV[4], ARGV[2])
