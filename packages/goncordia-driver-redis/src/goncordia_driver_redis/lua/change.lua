#!lua flags=allow-oom
-- needs: times jobs store wakes lines waiting unique index finish removal
-- Cancels, retries, reschedules or deletes jobs, each for itself. It works when memory is full, for
-- deleting is what empties it.
--
-- ARGV: time, changes. Answers of each: its status and the job's reported state in one number, or
-- that with the holder of its unique key.
local look_at_removal, forget = removal()

-- The job is over no more; the caller says what it does instead.
local function leave_finished(job)
  local name = STATES[job.state]
  call('ZREM', T .. 'd:' .. name, job.id)
  if job.unique and job.hold ~= 0 then
    call('ZREM', T .. 'dh:' .. name, job.id)
    call('SREM', T .. 'dk:' .. name, job.id)
  end
end

local function cancel(job)
  if job.state == WAITING then
    end_waiting(job)
    enter_finished(job, CANCELLED)
    settle_claims()
    store_job(job)
    return CHANGED
  end
  if job.state == RUNNING then
    job.marks = bit.bor(job.marks, CANCEL_ASKED)
    call('SADD', T .. 'cr:' .. job.session, job.id)
    cancels[#cancels + 1] = job.id
    store_job(job)
    return REQUESTED
  end
  return job.state == CANCELLED and SO_BEFORE or CONFLICT
end

-- Moves a waiting job.
local function move(job, run_at)
  end_waiting(job)
  job.run_at = run_at
  begin_waiting(job)
  store_job(job)
  return CHANGED
end

local function retry(job)
  if job.state == RUNNING then return CONFLICT end
  if job.state == WAITING then
    if job.run_at <= now then return SO_BEFORE end
    return move(job, now)
  end
  if job.unique and job.hold == 0 then
    local holder = key_holder(job.unique)
    if holder then return CONFLICT, holder.id end
    call('SET', T .. 'u:' .. job.unique, job.id)
  end
  leave_finished(job)
  call('HDEL', T .. 'x:' .. job.id, 'o')
  job.marks = band(job.marks, bit.bnot(STARTED + CANCEL_ASKED))
  if job.max >= 0 then job.max = math.max(job.max, job.attempt + 1) end
  job.state, job.finished, job.run_at = WAITING, 0, now
  call('SADD', T .. 'qs', job.queue)
  begin_waiting(job)
  store_job(job)
  return CHANGED
end

local function reschedule(job, run_at)
  if job.state ~= WAITING then return CONFLICT end
  if job.run_at == run_at then return SO_BEFORE end
  return move(job, run_at)
end

local function delete(job)
  if job.state == RUNNING then return CONFLICT end
  if job.state == WAITING then end_waiting(job) else leave_finished(job) end
  forget(job)
  job.gone = true
  return CHANGED
end

-- Looks at the keys that any change of the job may need, whatever else is done to it before.
local function look_at(job, action)
  expect('SCARD', T .. 'told')
  if job.state == RUNNING then return expect('SCARD', T .. 'cr:' .. job.session) end
  look_at_waiting(job)
  look_at_finished(job, STATES[CANCELLED])
  if job.state ~= WAITING then
    look_at_finished(job, STATES[job.state])
    expect('HLEN', T .. 'x:' .. job.id)
    expect('SCARD', T .. 'qs')
  end
  if action == 3 then look_at_removal(job) end
end

local answers, jobs = {}, {}
for n = 2, #ARGV do
  local id = sub(ARGV[n], 1, 16)
  if jobs[id] == nil then jobs[id] = read_job(id) or false end
  if jobs[id] then look_at(jobs[id], byte(ARGV[n], 17)) end
end
for n = 2, #ARGV do
  local id, action, when, at = read('<c16BBd', ARGV[n])
  local job = jobs[id]
  local status, holder, state = NO_JOB, nil, -1
  if job and not job.gone then
    if action == 0 then
      status = cancel(job)
    elseif action == 1 then
      status, holder = retry(job)
    elseif action == 2 then
      status = reschedule(job, resolve(when, at))
    else
      status = delete(job)
    end
    if not job.gone then state = reported(job) end
  end
  answers[n - 1] = { status * 16 + state + 1, holder }
end
settle_lines()
tell()
return answers
