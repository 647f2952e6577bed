"""Attributes of PBS's (and Torque's) server, queues and scheduler that have no counterpart.

After the PBS Professional reference guide, "Attributes", and Torque's administrator's guide, "Server
parameters" and "Queue attributes".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from headway.errors import nearest
from headway_adapters.site_import.found import Line
from headway_adapters.site_import.pbs_qmgr import SCHEDULER, Objects

#: What is carried over, or remarked where it is.
_CARRIED = frozenset({
    "backfill_depth", "job_sort_formula", "max_group_res", "max_group_run", "max_run", "max_run_res",
    "max_running", "max_user_res", "max_user_run", "preempt_order", "preempt_prio", "preempt_queue_prio",
    "priority", "queue_type", "resources_max",
})  # fmt: skip
#: Attribute -> the value, in lower case, that says nothing, and what headway does whatever it is.
_LEFT = {
    "started": ("true", "PBS starts no job of the queue; leave the queue out of cluster.options.queues "
                        "meanwhile"),
    "scheduling": ("true", "PBS does not schedule now"),
    "partition": ("", "another scheduler of PBS has the queue's jobs; leave the queue out of "
                      "cluster.options.queues"),
    "job_sort_formula_threshold": ("0|0.0", "jobs of low priority run, too"),
    "job_sort_key": ("", "the order of jobs"),
    "max_run_subjobs": ("", "the jobs of an array are not counted separately"),
    "max_slot_limit": ("", "the jobs of an array are not counted separately"),
    "opt_backfill_fuzzy": ("off", "bookings are exact"),
    "only_explicit_psets": ("false", "the adapter reads the placement sets"),
    "do_not_span_psets": ("false", "the adapter reads the placement sets"),
    "preempt_targets_enable": ("true", "the queues alone decide which job takes the place of which"),
    "node_pack": ("", "nodes are taken in their order"),
    "features_required": ("", "only nodes with these features"),
}  # fmt: skip
#: What PBS does itself: it refuses jobs, gives defaults, sends mail, writes logs, and tells how it is.
_NAMES = """
acl_group_enable acl_group_sloppy acl_groups acl_host_enable acl_host_list acl_host_moms_enable
acl_hosts acl_krb_realm_enable acl_krb_realms acl_logic_or acl_resv_group_enable acl_resv_groups
acl_resv_host_enable acl_resv_hosts acl_resv_user_enable acl_resv_users acl_roots acl_user_enable
acl_users allow_node_submit allow_proxy_user alt_router alter_resv_accept auto_node_np backfill_prime
checkpoint_defaults checkpoint_dir checkpoint_min comment copy_on_rerun credential_lifetime
default_chunk default_node default_qdel_arguments default_qsub_arguments default_queue
disable_server_id_check disallowed_types display_job_server_suffix down_on_error elig_time
eligible_time_enable enabled est_start_time_freq flatuid from_route_only hasnodes id
interactive_jobs_can_roam is_transit job_exclusive_on_use job_force_cancel_time job_full_report_time
job_history_duration job_history_enable job_nanny job_requeue_timeout job_run_wait job_start_timeout
job_stat_rate job_suffix_alias job_sync_timeout jobscript_max_size keep_completed kill_delay
license_count lock_file log_events log_file_max_size log_keep_days log_level mail_body_fmt mail_domain
mail_from mail_subject_fmt mail_uid mailer managers max_array_size max_concurrent_provision
max_group_queuable max_job_array_size max_job_sequence_id max_queuable max_queued max_queued_res
max_threads max_user_queuable min_threads moab_array_compatible mom_job_sync next_job_id next_job_number
no_mail_force node_check_rate node_fail_requeue node_group_enable node_group_key node_location
node_ping_rate node_submit_exceptions node_suffix np_default operators owner pass_cpu_clock
pbs_license_file_location pbs_license_info pbs_license_linger_time pbs_license_max pbs_license_min
pbs_version poll_jobs power_provisioning python_gc_min_interval python_restart_max_hooks
python_restart_max_objects python_restart_min_interval query_other_jobs queue_centric_limits
queued_jobs_threshold queued_jobs_threshold_res rerunnable_requeue reservation_count
reserve_retry_cutoff reserve_retry_init reserve_retry_time resources_assigned resources_available
resources_default resources_min restrict_res_to_release_on_suspend resv_allow_forced resv_enable
resv_post_processing_time route_destinations route_held_jobs route_lifetime route_retry_time
route_waiting_jobs rpp_highwater rpp_max_pkt_check rpp_retry sched_cycle_length sched_host sched_log
sched_port sched_preempt_enforce_resumption sched_priv sched_version scheduler_iteration
server_dyn_res_alarm server_host server_name server_state state state_count submit_hosts
sync_mom_hookfiles_timeout tcp_incoming_timeout tcp_timeout terminated throughput_mode
timeout_for_job_delete timeout_for_job_requeue total_jobs use_jobs_subdirs user_resv_enable
webapi_enable webapi_oidc_clientid webapi_oidc_provider_url xsched_sync
"""
_OWN = frozenset(_NAMES.split())


def without_counterpart(objects: Objects) -> Iterator[tuple[Line, str]]:
    """The lines that say which job starts when and are not carried over, and lines of unknown attributes."""
    for of, attributes in objects.said.items():
        where = {"": "server", SCHEDULER: "scheduler"}.get(of, f"queue {of}")
        for key, values in attributes.items():
            for text, line in values:
                if why := _why(of, key, text):
                    yield line, f"{where}: {why}"


def _why(of: str, key: str, text: str) -> str:
    """Why an attribute is left out; "" if it is not, or says nothing of which job starts when."""
    name = key.partition(".")[0].lower()
    if name == "backfill_depth" and of not in ("", SCHEDULER):
        return f"{key} = {text} is not carried over: the server's holds"
    if name in _CARRIED or name in _OWN or name.endswith("_soft"):
        return ""
    if name in _LEFT:
        nothing, why = _LEFT[name]
        return "" if re.fullmatch(nothing, text.lower()) else f"{key} = {text} is not carried over: {why}"
    hint = nearest(name, (*_CARRIED, *_LEFT, *_OWN))
    return f"{key} is no attribute that is known here.{hint if 'Did you mean' in hint else ''}"
