#!lua flags=allow-oom
-- needs: times jobs store wakes lines waiting unique finish
-- Notes on running claims that they have started, and keeps checkpoints. Each acts only on the
-- claim that it names. ARGV: time, marks. Answers of each: a number, as of a finish.
local answers, jobs = {}, {}
for n = 2, #ARGV do
  local id = sub(ARGV[n], 1, 16)
  if jobs[id] == nil then jobs[id] = read_job(id) or false end
  if jobs[id] and band(byte(ARGV[n], 41), 2) ~= 0 then expect('HLEN', T .. 'x:' .. id) end
end
for n = 2, #ARGV do
  local id, session, fetch_no, given, at = read('<c16c16dB', ARGV[n])
  local job = jobs[id]
  if not job then
    answers[n - 1] = GONE * 16
  elseif job.state ~= RUNNING or job.session ~= session or job.fetch_no ~= fetch_no then
    answers[n - 1] = STALE * 16 + reported(job) + 1
  else
    local before = job.marks
    if band(given, 1) ~= 0 then job.marks = bit.bor(job.marks, STARTED) end
    if band(given, 2) ~= 0 then keep_extra(job, 'c', sub(ARGV[n], at)) end
    if job.marks ~= before then store_job(job) end
    answers[n - 1] = DONE * 16 + reported(job) + 1
  end
end
return answers
