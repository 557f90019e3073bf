-- The string of a job. `wire/jobs.py` says what stands where; both must agree.
local FULL, GROUPED, UNIQUE, RUN_AT, LIMITED, AFTER = 1, 2, 4, 8, 16, 32
local WAITING, RUNNING, COMPLETED, DISCARDED, CANCELLED = 0, 1, 2, 3, 4
local FAILED, STARTED, CANCEL, ERRORS, EXTRAS, ENDED = 1, 2, 4, 8, 16, 32
local HEAD = '<BHddBBi4i4ddc16dc16d'
local NOBODY = string.rep('\0', 16)
local STATES = { [2] = 'completed', [3] = 'discarded', [4] = 'cancelled' }

-- The part of the header that says what does not change: queue, kind, priority, group, key.
local function read_common(job, raw, at)
  job.queue, job.kind, job.priority, at = read('<Hc0Hc0h', raw, at)
  if band(job.flags, GROUPED) ~= 0 then
    job.group, job.limit, at = read('<Hc0I4', raw, at)
  end
  if band(job.flags, UNIQUE) ~= 0 then
    job.unique, job.hold = read('<c32d', raw, at)
  end
end

-- A job from the beginning of its string.
local function parse_job(id, raw)
  local job = { id = id, key = T .. 'j:' .. id }
  local at
  if band(byte(raw), FULL) ~= 0 then
    job.flags, job.size, job.created, job.run_at, job.state, job.marks, job.attempt, job.max,
      job.claimed, job.finished, job.session, job.fetch_no, job.ended, job.ended_no, job.worker, at =
      read(HEAD .. 'Hc0', raw)
  else
    job.flags, job.size, job.created, at = read('<BHd', raw)
    job.run_at, job.max = job.created, -1
    if band(job.flags, RUN_AT) ~= 0 then job.run_at, at = read('<d', raw, at) end
    if band(job.flags, LIMITED) ~= 0 then job.max, at = read('<i4', raw, at) end
    job.state, job.marks, job.attempt, job.claimed, job.finished = WAITING, 0, 0, 0, 0
    job.session, job.fetch_no, job.ended, job.ended_no = NOBODY, 0, NOBODY, 0
  end
  job.common = at
  read_common(job, raw, at)
  return job
end

-- The beginning of a job's string: all of its header; nil when there is no such job.
local function job_header(id)
  local key = T .. 'j:' .. id
  local raw = call('GETRANGE', key, 0, 255)
  if raw == '' then return nil end
  local size = read('<H', raw, 2)
  if size > #raw then raw = call('GETRANGE', key, 0, size - 1) end
  return raw
end

local function read_job(id)
  local raw = job_header(id)
  return raw and parse_job(id, raw)
end

-- The fixed part of a full header.
local function head_of(job)
  return write(HEAD, job.flags, job.size, job.created, job.run_at, job.state, job.marks,
    job.attempt, job.max, job.claimed, job.finished, job.session, job.fetch_no, job.ended,
    job.ended_no)
end

-- Makes the header full. `common` and `worker` as they are to be; gives what stands before args.
local function full_header(job, common, worker)
  job.flags = bit.bor(band(job.flags, bit.bnot(RUN_AT + LIMITED + AFTER)), FULL)
  job.size = 93 + 2 + #worker + #common
  return head_of(job) .. write('<Hc0', #worker, worker) .. common
end

-- Stores what has changed in the fixed part.
local function store_job(job)
  if band(job.flags, FULL) ~= 0 then
    call('SETRANGE', job.key, 0, head_of(job))
    return
  end
  local raw = call('GET', job.key)
  local size = job.size
  call('SET', job.key, full_header(job, sub(raw, job.common, size), '') .. sub(raw, size + 1))
end

-- What a reader needs beside the strings: errors, checkpoint and output of the job at this place.
local function add_extras(extras, place, id, raw)
  if band(byte(raw), FULL) == 0 then return end
  local marks = byte(raw, 21)
  if band(marks, ERRORS + EXTRAS) == 0 then return end
  local kept = { false, false }
  if band(marks, EXTRAS) ~= 0 then kept = call('HMGET', T .. 'x:' .. id, 'c', 'o') end
  extras[#extras + 1] = { place, call('LRANGE', T .. 'e:' .. id, 0, -1), kept[1], kept[2] }
end
