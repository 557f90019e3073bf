#!lua flags=allow-oom
-- needs: jobs holders
-- Has running jobs that no session holds held again by the session that claimed them, so that its
-- worker ends them, or whoever looks for the jobs of dead sessions takes them back.
-- ARGV: time, ids one behind the other.
for at = 1, #ARGV[2], 16 do
  local id = sub(ARGV[2], at, at + 15)
  if is_stray(id) then
    local job = read_job(id)
    call('ZADD', T .. 'c:' .. job.session, job.fetch_no, id)
    if not call('ZSCORE', T .. 'so', job.session) then
      call('SADD', T .. 'se', job.session)
    end
  end
end
