-- Slurm submit filter for headway: every job of a managed partition enters held.
--
-- Install beside slurm.conf on the slurmctld host, set JobSubmitPlugins=lua in slurm.conf, then
-- "scontrol reconfigure" (switching plugins on for the first time needs a restart of slurmctld).
-- To switch it off, empty MANAGED: Slurm reads this file again by itself when it changes.
--
-- Slurm counts a filter's hold as the user's own. The AdminComment "headway:new" tells headway
-- that it is not, and headway then holds the job as administrator, so that the user cannot release
-- it past headway. A job that its user submitted with --hold keeps the user's hold.

-- The partitions of cluster.options.partitions in headway's configuration.
local MANAGED = { batch = true }

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

function slurm_job_submit(job_desc, part_list, submit_uid)
   local managed = false
   for name in string.gmatch(partition_of(job_desc, part_list), "[^,]+") do
      managed = managed or MANAGED[name] == true
   end
   if managed and job_desc.priority ~= 0 then
      job_desc.priority = 0
      if job_desc.admin_comment == nil or job_desc.admin_comment == "" then
         job_desc.admin_comment = "headway:new"
      end
   end
   return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
   return slurm.SUCCESS
end
