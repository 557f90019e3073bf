-- The string of a job. `wire/jobs.py` says what stands where; both must agree.
local HEAD = '<BHddBBi4i4ddc16dc16d'

-- A job from the beginning of its string: all of its header.
local function parse_job(id, raw)
  local flags, size, created, at = read('<BHd', raw)
  local job
  if band(flags, FULL) ~= 0 then
    local run_at, state, marks, attempt, max, claimed, finished, session, fetch_no, ended, ended_no,
      worker
    flags, size, created, run_at, state, marks, attempt, max, claimed, finished, session, fetch_no,
      ended, ended_no, worker, at = read(HEAD .. 'Hc0', raw)
    job = { id = id, key = T .. 'j:' .. id, flags = flags, size = size, created = created,
      run_at = run_at, state = state, marks = marks, attempt = attempt, max = max,
      claimed = claimed, finished = finished, session = session, fetch_no = fetch_no,
      ended = ended, ended_no = ended_no, worker = worker, common = at,
      queue = false, kind = false, priority = false }
  else
    job = { id = id, key = T .. 'j:' .. id, flags = flags, size = size, created = created,
      run_at = created, state = WAITING, marks = 0, attempt = 0, max = -1, claimed = 0,
      finished = 0, session = NOBODY, fetch_no = 0, ended = NOBODY, ended_no = 0, worker = '' }
    if band(flags, RUN_AT) ~= 0 then job.run_at, at = read('<d', raw, at) end
    if band(flags, LIMITED) ~= 0 then job.max, at = read('<i4', raw, at) end
    job.common = at
  end
  job.queue, job.kind, job.priority, at = read('<Hc0Hc0h', raw, at)
  if band(flags, GROUPED) ~= 0 then job.group, job.limit, at = read('<Hc0I4', raw, at) end
  if band(flags, UNIQUE) ~= 0 then job.unique, job.hold = read('<c32d', raw, at) end
  return job
end

-- The beginning of a job's string: all of its header; nil when there is no such job.
local function job_header(id)
  local key = T .. 'j:' .. id
  local raw = ask('GETRANGE', key, 0, 255)
  if raw == '' then return nil end
  local size = byte(raw, 2) + 256 * byte(raw, 3)
  if size > #raw then raw = call('GETRANGE', key, 0, size - 1) end
  return raw
end

local function read_job(id)
  local raw = job_header(id)
  return raw and parse_job(id, raw)
end
