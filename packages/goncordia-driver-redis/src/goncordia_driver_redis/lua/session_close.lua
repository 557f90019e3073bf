#!lua flags=allow-oom
-- needs: times jobs store wakes lines waiting unique finish sessions
-- Ends a session, and releases what it holds, at most so many; how many are left. The session is
-- ended by the first call already, so that it claims nothing more.
-- One that was ended otherwise is left to the rescuers.
-- ARGV: time, session, limit.
local session = ARGV[2]
look_at_session(session)
local open, closing = unpack(call('HMGET', T .. 's:' .. session, 'open', 'closing'))
if open ~= '1' and closing ~= '1' then return 0 end
local ids, jobs = call('ZRANGE', T .. 'c:' .. session, 0, ARGV[3] - 1), {}
if #ids > 0 then
  expect('HLEN', T .. 'r')
  expect('SCARD', T .. 'told')
end
for n, id in ipairs(ids) do
  jobs[n] = read_job(id) or false
  if jobs[n] then look_at_end(jobs[n], RELEASE, 0) else look_at_drop(session) end
end
if open == '1' then
  call('HSET', T .. 's:' .. session, 'closing', 1)
  end_session(session)
end
for n, id in ipairs(ids) do
  if jobs[n] then end_claim(jobs[n], RELEASE, NOW) else drop(session, id) end
end
settle_claims()
settle_lines()
tell()
return call('ZCARD', T .. 'c:' .. session)
