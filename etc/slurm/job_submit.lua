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

-- The partitions of cluster.options.partitions in headway's configuration.
local MANAGED = { batch = true }

-- The partitions that headway starts background jobs in (cluster.options.background), such as
-- { background = true }: nobody else submits to them or moves jobs there.
local BEHIND = {}

-- Users (numbers) whose own jobs are not looked after here: root's, and those of the user that headway runs
-- as, if that user submits jobs.
local EXEMPT = { [0] = true }

local NEW = "headway:new"
-- The user stated no greatest number of nodes: Slurm 24.11 does not show that of a job that enters held.
local ANY_NODES = ";nodes=any"
local RELEASED = "headway:released"
local USER_HOLD = "headway:user-hold"
local PENDING = 0
local NO_VAL = 4294967294
local ACCESS_DENIED = 2002

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

function slurm_job_submit(job_desc, part_list, submit_uid)
   if is_behind(job_desc.partition) and not EXEMPT[submit_uid] then
      return ACCESS_DENIED
   end
   if is_managed(partition_of(job_desc, part_list)) and job_desc.priority ~= 0 then
      job_desc.priority = 0
      if job_desc.admin_comment == nil or job_desc.admin_comment == "" then
         job_desc.admin_comment = NEW .. (job_desc.max_nodes == NO_VAL and ANY_NODES or "")
      end
   end
   return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
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
   if note ~= nil and string.sub(note, 1, 8) ~= "headway:" and string.sub(before or "", 1, #NEW) == NEW and mark_of(comment) ~= USER_HOLD then
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
      -- A hold takes an earlier release back. Of a job that is held already Slurm does not note it.
      if job_rec.priority == 0 then
         job_desc.comment = with_mark(comment, USER_HOLD)
      elseif mark_of(comment) ~= "" then
         job_desc.comment = without_mark(comment)
      end
   elseif (wish ~= nil and wish ~= NO_VAL) or job_rec.priority ~= 0 then
      -- A release; or a job that nothing holds (requeued, on its way here from another partition).
      job_desc.priority = 0
      job_desc.comment = with_mark(comment, RELEASED)
   end
   return slurm.SUCCESS
end
