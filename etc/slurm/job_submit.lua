-- Slurm submit filter for headway: every job of a managed partition enters held, and only headway
-- takes that hold away.
--
-- Install beside slurm.conf on the slurmctld host, set JobSubmitPlugins=lua in slurm.conf, then restart
-- slurmctld: it starts only with a file that is there and not broken.
-- To switch it off, empty MANAGED. At the next submission slurmctld loads a file that was modified after its
-- last loading. It goes on with the script that it has when this file comes with an older time ("cp -p"; touch
-- it), is broken (slurmctld.log says so) or is gone. "headway check" says what it has, as far as can be seen.
--
-- Slurm counts a filter's hold as the user's own. The AdminComment "headway:new" tells headway
-- that it is not, and headway then holds the job as administrator. A job that its user submitted with
-- --hold keeps the user's hold.
--
-- Without slurm_job_modify below a job's user could have it started past headway: by "scontrol release"
-- of a job that was submitted with --hold, by moving a job here from another partition, or by "scontrol
-- update JobId=J Nice=N", with which Slurm (22.05) takes any hold away, an administrator's too. A wish of
-- that kind becomes a word in the job's comment, which headway reads: its user has released it. So does a
-- user's "scontrol hold" of a job that headway holds, of which Slurm takes no note.
--
-- Of several daemons the last that took over has the highest number (its epoch), and each of its writes carries
-- it at the end of a job's AdminComment, which only administrators can write: "headway:held;epoch=7". A write with
-- a lower number than the highest that was heard comes from a daemon that was paused, and is refused. Writes
-- without one, of people and of "headway give-back", are not.
--
-- While headway drives it says so in a file (HEARTBEAT). When nothing was heard for PATIENCE seconds, new jobs
-- are left to Slurm, and so are users' own holds, until headway is heard again.

-- The partitions of cluster.options.partitions in headway's configuration.
local MANAGED = { batch = true }

-- The partitions that headway starts background jobs in (cluster.options.background), such as
-- { background = true }: nobody else submits to them or moves jobs there.
local BEHIND = {}

-- Users (numbers) whose own jobs are not looked after here: root's, and those of the user that headway runs
-- as, if that user submits jobs.
local EXEMPT = { [0] = true }

-- The file in which headway says that it drives (cluster.options.heartbeat), as it is called on this machine;
-- "": none, and jobs wait for headway however long it is away.
local HEARTBEAT = "/run/headway/heartbeat"

-- After so many seconds without a word in it new jobs are left to Slurm (cluster.options.patience); 0: never.
local PATIENCE = 300

-- A file that this script writes: the highest epoch, for slurmctld's next start. It belongs into a folder that only
-- SlurmUser may write to, such as StateSaveLocation; "": the marks of jobs tell it alone.
local FENCE = "/var/lib/slurm/slurmctld/headway.epoch"

-- The users (numbers) that headway runs as: they alone write epochs.
local LEADERS = { [0] = true }

-- slurmctld has just started, and an old word says little: headway, too, had no answer for a while. So many
-- seconds are left to it.
local GRACE = 60

local NEW = "headway:new"
-- The user stated no greatest number of nodes: Slurm 24.11 does not show that of a job that enters held.
local ANY_NODES = ";nodes=any"
local RELEASED = "headway:released"
local USER_HOLD = "headway:user-hold"
-- Set so, a request changes no AdminComment. (The elements of an array and the components of a heterogeneous job
-- have one request, which comes here with each of them: what one has may not be written into it.)
local NO_COMMENT = ""
local PENDING = 0
local NO_VAL = 4294967294
local INFINITE = 4294967295
local ACCESS_DENIED = 2002
-- No error of Slurm's: headway knows by it that another daemon has taken over.
local SUPERSEDED = 27182

local function partition_of(job_desc, part_list)
   if job_desc.partition ~= nil and job_desc.partition ~= "" then
      return job_desc.partition
   end
   for name, part in pairs(part_list) do
      if part.flag_default == 1 then
         return name
      end
   end
   return ""
end

local function is_among(partitions, known)
   for name in string.gmatch(partitions or "", "[^,]+") do
      if known[name] then
         return true
      end
   end
   return false
end

local function is_managed(partitions)
   return is_among(partitions, MANAGED)
end

local function is_behind(partitions)
   return is_among(partitions, BEHIND)
end

local function mark_of(comment)
   for _, word in ipairs({ RELEASED, USER_HOLD }) do
      if string.sub(comment or "", -#word) == word then
         return word
      end
   end
   return ""
end

local function without_mark(comment)
   local text = string.sub(comment or "", 1, -#mark_of(comment) - 1)
   return string.match(text, "^(.-) ?$")
end

local function with_mark(comment, word)
   local text = without_mark(comment)
   return text == "" and word or (text .. " " .. word)
end

local function text_of(path)
   local file = io.open(path, "r")
   if file == nil then
      return ""
   end
   local text = file:read(512)
   file:close()
   return text or ""
end

-- Seconds by a clock that is never set, where the system has one.
local function clock()
   return tonumber(string.match(text_of("/proc/uptime"), "^%d+")) or os.time()
end

-- When slurmctld was started, by that clock; where that cannot be told, now.
local function started()
   local now = clock()
   local fields = string.match(text_of("/proc/self/stat"), "^.*%) (.*)$") or ""
   local ticks = tonumber(string.match(fields, "^" .. string.rep("%S+ ", 19) .. "(%d+)"))
   return ticks ~= nil and math.min(math.floor(ticks / 100), now) or now
end

local BOOT = string.match(text_of("/proc/sys/kernel/random/boot_id"), "^%S+")
-- When headway was there last as far as is known, and when its file was read last, by that clock.
local heard = started() - PATIENCE + math.min(GRACE, PATIENCE)
local looked = heard
-- What the file said then.
local said = ""
local was_silent = false

-- What the file says now: sets `heard`; true if it says that headway was told to give control back. A file that
-- is not there, or not headway's, says nothing.
local function rests(now)
   local text = text_of(HEARTBEAT)
   local boot, up, at = string.match(text, "^headway drives boot=(%S+) up=(%d+) at=(%d+)")
   if boot == nil then
      return string.match(text, "^headway rests ") ~= nil
   end
   up, at = tonumber(up), tonumber(at)
   if boot == BOOT then
      -- Written on this machine since it was booted: the time can be trusted, also when the clock was set.
      if up <= now + 1 then
         heard = math.max(heard, up)
      end
   else
      -- Written on another machine, or before a boot: its clock may be another. That it was written since it
      -- was read last is certain.
      local age = os.time() - at
      if text ~= said then
         heard = math.max(heard, age < 0 and now or looked)
      end
      if age >= 0 and age <= PATIENCE then
         heard = math.max(heard, now - age)
      end
   end
   said = text
   return false
end

-- Whether headway is away, and jobs are Slurm's.
local function is_silent()
   if HEARTBEAT == "" or PATIENCE <= 0 then
      return false
   end
   local now = clock()
   heard = math.min(heard, now)
   local silent = rests(now) or now - heard > PATIENCE
   looked = now
   if silent ~= was_silent then
      was_silent = silent
      slurm.log_info("headway: %s", silent and "not heard, new jobs are left to Slurm" or "heard again, new jobs are held")
   end
   return silent
end

-- The highest epoch; nil: not looked for yet. Which daemon has it, by a word of its own; "": not known.
local highest, leader = nil, ""
-- When its daemon was heard last, by the clock that is never set; nil: not since this script was loaded.
local led = nil
local is_saved = true

-- Whether only headway writes such an AdminComment.
local function is_mark(note)
   return note ~= nil and (string.sub(note, 1, 8) == "headway:" or string.find(note, ": by headway", 1, true) ~= nil)
end

-- The epoch in a mark of headway's; nil: none.
local function epoch_of(note)
   return is_mark(note) and tonumber(string.match(note, ";epoch=(%d+)$")) or nil
end

-- The highest epoch that was heard, also by the script before this one.
local function heard_epoch()
   if highest == nil then
      local epoch, name = string.match(FENCE ~= "" and text_of(FENCE) or "", "^(%d+) (%w*)")
      highest, leader = tonumber(epoch) or 0, name or ""
      for _, job in pairs(slurm.jobs or {}) do
         local marked = epoch_of(job.admin_comment)
         if marked ~= nil and marked > highest then
            highest, leader = marked, ""
         end
      end
   end
   return highest
end

local function save()
   if FENCE == "" then
      return
   end
   local file = io.open(FENCE .. ".new", "w")
   local done = file ~= nil and file:write(string.format("%d %s\n", highest, leader)) ~= nil
   done = file ~= nil and file:close() and done and os.rename(FENCE .. ".new", FENCE)
   if not done and is_saved then
      slurm.log_error("headway: %s cannot be written: after a restart the marks of jobs tell the epoch", FENCE)
   end
   is_saved = done and true or false
end

local function takes_over(epoch, name)
   highest, leader = epoch, name
   save()
   slurm.log_info("headway: epoch %d", epoch)
end

-- What a daemon asks by "sbatch --test-only --comment": the highest epoch, to have it, or to leave. It is answered by a
-- message, and no such job is ever accepted.
local function answer(question, uid)
   local verb, epoch, name = string.match(question, "^headway:(%a+)=(%d+):(%w+)$")
   epoch = tonumber(epoch)
   if epoch ~= nil and not LEADERS[uid] then
      slurm.log_user("headway fence: user %d is not among LEADERS of job_submit.lua", uid)
      return ACCESS_DENIED
   end
   if verb == "lead" and (epoch > heard_epoch() or (epoch == highest and leader == "")) then
      takes_over(epoch, name)
   end
   if epoch == heard_epoch() and name == leader then
      led = verb == "lead" and clock() or nil
   end
   slurm.log_user("headway fence: epoch=%d by=%s heard=%s%s%s", heard_epoch(), leader,
      led ~= nil and clock() - led or "never", is_saved and "" or " unsaved", LEADERS[uid] and "" or " stranger")
   return ACCESS_DENIED
end

-- Why a write is refused; nil: it is not. Takes what only we read out of it.
local function fenced(job_desc, job_rec, uid)
   local note, before = job_desc.admin_comment, epoch_of(job_rec.admin_comment)
   local epoch = epoch_of(note)
   local wish = job_desc.priority
   local releases = wish ~= nil and wish ~= 0 and wish ~= NO_VAL
   local is_stale = releases and before ~= nil and string.sub(job_rec.admin_comment, 1, 12) == "headway:pin="
   if epoch == nil then
      -- Who drives takes the pin of an earlier daemon away in a moment; of one that is away it may be released.
      if is_stale and before < heard_epoch() and not is_silent() then
         slurm.log_user("headway fence: job %d was pinned under epoch %d", job_rec.job_id, before)
         return SUPERSEDED
      end
      return nil
   end
   if not LEADERS[uid] then
      slurm.log_info("headway: user %d is not among LEADERS, epoch %d is refused", uid, epoch)
      slurm.log_user("headway fence: user %d is not among LEADERS of job_submit.lua", uid)
      return ACCESS_DENIED
   end
   if epoch < heard_epoch() or (is_stale and before < epoch) then
      slurm.log_info("headway: a write to job %d of epoch %d is refused, %d has taken over", job_rec.job_id,
         is_stale and math.min(before, epoch) or epoch, highest)
      slurm.log_user("headway fence: epoch=%d by=%s", highest, leader)
      return SUPERSEDED
   end
   if epoch > highest then
      takes_over(epoch, "")
   end
   led = clock()
   local word = string.match(note, "^headway:(%a+);epoch=%d+$")
   if word == "same" or word == "release" then
      job_desc.admin_comment = NO_COMMENT
   end
   if word == "release" and releases then
      -- What "scontrol release" asks for, which can carry no epoch.
      job_desc.priority = INFINITE
   end
   return nil
end

local function is_new(mark)
   return string.sub(mark or "", 1, #NEW) == NEW
end

-- Whether headway itself holds the job, as administrator.
local function is_taken(mark)
   return string.sub(mark or "", 1, 8) == "headway:" and not is_new(mark)
end

function slurm_job_submit(job_desc, part_list, submit_uid)
   if string.find(job_desc.comment or "", "^headway:lea[dv]e?=") or job_desc.comment == "headway:epoch?" then
      return answer(job_desc.comment, submit_uid)
   end
   if is_behind(job_desc.partition) and not EXEMPT[submit_uid] then
      return ACCESS_DENIED
   end
   if is_mark(job_desc.admin_comment) and not LEADERS[submit_uid] then
      -- Nobody else brings a mark of headway's with a job.
      job_desc.admin_comment = ""
   end
   if is_managed(partition_of(job_desc, part_list)) and job_desc.priority ~= 0 and not is_silent() then
      job_desc.priority = 0
      if job_desc.admin_comment == nil or job_desc.admin_comment == "" then
         job_desc.admin_comment = NEW .. (job_desc.max_nodes == NO_VAL and ANY_NODES or "")
      end
   end
   return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
   local refusal = fenced(job_desc, job_rec, modify_uid)
   if refusal ~= nil then
      return refusal
   end
   if is_behind(job_desc.partition) and modify_uid == job_rec.user_id and not EXEMPT[modify_uid] then
      return ACCESS_DENIED
   end
   local target = job_desc.partition
   if target == nil or target == "" then
      target = job_rec.partition
   end
   if not is_managed(target) and not is_behind(target) then
      return slurm.SUCCESS
   end
   local comment = job_desc.comment or job_rec.comment
   local note, before = job_desc.admin_comment, job_rec.admin_comment
   if note ~= nil and note ~= NO_COMMENT and string.sub(note, 1, 8) ~= "headway:" and is_new(before) and mark_of(comment) ~= USER_HOLD then
      -- An administrator writes over the mark that says whose hold this is: the comment says it from now on.
      comment = with_mark(comment, RELEASED)
      job_desc.comment = comment
   end
   if modify_uid ~= job_rec.user_id or EXEMPT[modify_uid] then
      return slurm.SUCCESS
   end
   if job_rec.priority == 0 and job_desc.nice ~= nil and job_desc.nice ~= NO_VAL then
      slurm.log_info("headway: Nice of job %d is not changed while it is held", job_rec.job_id)
      return ACCESS_DENIED
   end
   if job_rec.job_state ~= PENDING then
      return slurm.SUCCESS
   end
   local wish = job_desc.priority
   if job_desc.comment ~= nil and mark_of(job_rec.comment) == USER_HOLD then
      -- Other words of the user's are no release.
      comment = with_mark(job_desc.comment, USER_HOLD)
      job_desc.comment = comment
   end
   if wish == 0 then
      -- A hold takes an earlier release back. Of a job that is held already Slurm does not note it, and a job
      -- that was released while headway was away has the mark of a job that waits for headway.
      if job_rec.priority == 0 or is_new(before) then
         job_desc.comment = with_mark(comment, USER_HOLD)
      elseif mark_of(comment) ~= "" then
         job_desc.comment = without_mark(comment)
      end
   elseif (wish ~= nil and wish ~= NO_VAL) or job_rec.priority ~= 0 then
      -- A release; or a job that nothing holds (requeued, on its way here from another partition).
      if not (job_rec.priority == 0 and is_taken(before)) and is_silent() then
         if mark_of(comment) ~= "" then
            job_desc.comment = without_mark(comment)
         end
         return slurm.SUCCESS
      end
      job_desc.priority = 0
      job_desc.comment = with_mark(comment, RELEASED)
   end
   return slurm.SUCCESS
end
