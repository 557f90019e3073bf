#!lua flags=allow-oom
-- needs: base jobs wakes lines waiting keys finish fetch
-- Finishes claims, each only if it is the claim that it names, and claims what is due, in one step.
-- It works when memory is full, for it is what empties it.
--
-- ARGV: time, the request or '', finishes. Answers: of each finish a number, and the fetch's.
local outcomes = finish_all(3, #ARGV)
local fetched = ARGV[2] ~= '' and fetch(ARGV[2])
tell()
return { outcomes, fetched }
