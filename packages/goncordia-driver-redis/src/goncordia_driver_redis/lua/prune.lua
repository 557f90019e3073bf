#!lua flags=allow-oom
-- needs: jobs unique index removal
-- Deletes finished jobs of one state that ended before a time and hold no unique key; at most so
-- many, the oldest first. Those whose hold has ended come to the others first.
-- ARGV: time, state, before, limit. Answers: how many came, how many went.
local name, limit = ARGV[2], tonumber(ARGV[4])
expect('ZCARD', T .. 'd:' .. name)
local freed = ask('ZRANGEBYSCORE', T .. 'dh:' .. name, '-inf', now, 'LIMIT', 0, limit)
local jobs = {}
for n, id in ipairs(freed) do jobs[n] = read_job(id) or false end
for n, id in ipairs(freed) do
  if jobs[n] then call('ZADD', T .. 'd:' .. name, jobs[n].finished, id) end
  call('ZREM', T .. 'dh:' .. name, id)
end
local old = call('ZRANGEBYSCORE', T .. 'd:' .. name, '-inf', above(tonumber(ARGV[3])), 'LIMIT', 0,
  limit)
local _, _, forget_finished = removal()
forget_finished(name, old)
return { #freed, #old }
