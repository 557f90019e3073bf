#!lua flags=no-writes
-- needs: jobs holders
-- Running jobs that no session holds, of the next chunk of the index below an id.
-- ARGV: time, bound for the chunk. Answers: its start or '' at the end, and the ids one behind the
-- other.
local start = ask('ZREVRANGEBYLEX', T .. 'i', ARGV[2], '-', 'LIMIT', 0, 1)[1]
if not start then return { '', '' } end
local chunk, found = ask('GET', T .. 'i:' .. start) or '', {}
for at = 1, #chunk, 16 do
  local id = sub(chunk, at, at + 15)
  if is_stray(id) then found[#found + 1] = id end
end
return { start, table.concat(found) }
