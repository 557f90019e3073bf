#!lua flags=allow-oom
-- needs: times jobs store wakes lines waiting unique finish holders
-- Counts the running jobs anew, of queues and of groups, by what the sessions hold. What they hold
-- of jobs that are gone is let go. So a job that was evicted while it ran keeps no slot.
local queues, runs, gone = {}, {}, {}
for _, session in ipairs(holders()) do
  for _, id in ipairs(ask('ZRANGE', T .. 'c:' .. session, 0, -1)) do
    local job = read_job(id)
    if job and job.state == RUNNING and job.session == session then
      queues[job.queue] = (queues[job.queue] or 0) + 1
      if job.group then runs[job.group] = (runs[job.group] or 0) + 1 end
    else
      look_at_drop(session)
      gone[#gone + 1] = { session, id }
    end
  end
end

-- How many more run of each than was counted.
local function differences(key, counts)
  local differ, counted = {}, ask('HGETALL', key)
  for n = 1, #counted, 2 do differ[counted[n]] = -counted[n + 1] end
  for name, count in pairs(counts) do differ[name] = (differ[name] or 0) + count end
  return differ
end

local by_queue, by_group = differences(T .. 'r', queues), differences(T .. 'gr', runs)
expect('SCARD', T .. 'told')
expect('SCARD', T .. 'qs')
for group in pairs(by_group) do (groups or make_groups()).look_at_runs(group) end
for _, each in ipairs(gone) do drop(unpack(each)) end
for queue in pairs(by_queue) do
  if queues[queue] then
    call('HSET', T .. 'r', queue, queues[queue])
    call('SADD', T .. 'qs', queue)
  else
    call('HDEL', T .. 'r', queue)
  end
end
for group, more in pairs(by_group) do
  for _ = 1, -more do groups.end_run(group) end
  for _ = 1, more do groups.begin_run(group) end
end
settle_claims()
settle_lines()
tell()
