#!lua flags=allow-oom
-- needs: wakes
-- Pauses or resumes a queue; the listeners hear of it when that changes something.
-- ARGV: time, name, 1 or 0.
local before = ask('HGET', T .. 'p', ARGV[2]) or '0'
if before == ARGV[3] then return end
call('HSET', T .. 'p', ARGV[2], ARGV[3])
publish('q', ARGV[2])
