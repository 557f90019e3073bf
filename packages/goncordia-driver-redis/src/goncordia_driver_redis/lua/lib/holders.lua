-- Which sessions hold jobs, and which jobs none does.

-- All open sessions, and ended ones that still hold claims.
local function holders()
  local sessions = ask('ZRANGE', T .. 'so', 0, -1)
  for _, session in ipairs(ask('SMEMBERS', T .. 'se')) do sessions[#sessions + 1] = session end
  return sessions
end

-- Whether the job says that it runs, and no session that anybody looks at holds it.
local function is_stray(id)
  -- Of most jobs the first bytes tell.
  local raw = call('GETRANGE', T .. 'j:' .. id, 0, 19)
  if raw == '' or band(byte(raw), FULL) == 0 or byte(raw, 20) ~= RUNNING then return false end
  local session = read_job(id).session
  return not ask('ZSCORE', T .. 'c:' .. session, id)
    or (not ask('ZSCORE', T .. 'so', session) and ask('SISMEMBER', T .. 'se', session) == 0)
end
