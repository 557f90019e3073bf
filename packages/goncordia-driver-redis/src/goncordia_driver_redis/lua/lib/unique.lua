-- Unique keys: `u:<key>` names who took the key last; whether that job holds it still is worked
-- out from the job.
local function holds_key(job)
  if job.hold == 0 then return job.state <= RUNNING end
  return now < job.hold
end

-- The job that holds the key now, or nil.
local function key_holder(unique)
  local id = ask('GET', T .. 'u:' .. unique)
  local job = id and read_job(id)
  return job and holds_key(job) and job or nil
end

local function has_key(job)
  return job.unique ~= nil and call('GET', T .. 'u:' .. job.unique) == job.id
end

-- The job holds its key no more.
local function free_key(job)
  if has_key(job) then call('DEL', T .. 'u:' .. job.unique) end
end
