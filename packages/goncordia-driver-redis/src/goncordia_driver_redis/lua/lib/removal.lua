-- Jobs leave a finished state, and leave for good.
local _, remove_id = index_upkeep()

-- The job is over no more; the caller says what it does instead.
local function leave_finished(job)
  local name = ({ [COMPLETED] = 'completed', [DISCARDED] = 'discarded', [CANCELLED] = 'cancelled' })[job.state]
  call('ZREM', T .. 'd:' .. name, job.id)
  if job.unique and job.hold ~= 0 then
    call('ZREM', T .. 'dh:' .. name, job.id)
    call('SREM', T .. 'dk:' .. name, job.id)
  end
end

-- Forgets a job that neither waits nor runs, and stands in no list of finished ones.
local function forget_job(job)
  if job.unique then free_key(job) end
  call('DEL', job.key, T .. 'e:' .. job.id, T .. 'x:' .. job.id)
  remove_id(job.id)
end

-- Forgets finished jobs, the first of their list.
local function forget_first(name, ids)
  call('ZREM', T .. 'd:' .. name, unpack(ids))
  for _, id in ipairs(ids) do
    local job = read_job(id)
    if job then forget_job(job) end
  end
end
