"""Labels of the details page, mapped to metric names.

The page prints "Duration", not ``gpu__time_duration.sum``, and labels are not unique: "Memory Throughput" is a share of
peak in one section and bytes per second in another. A label is known by its section and by its base unit. Labels whose
metric changed between releases are listed with the one their section and unit tell apart, or not at all: what is not
listed keeps its own words, as ``Section/Label``.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

_SPEED = "GPU Speed Of Light Throughput"
_DISTRIBUTION = "GPU and Memory Workload Distribution"
_COMPUTE = "Compute Workload Analysis"
_MEMORY = "Memory Workload Analysis"
_LAUNCH = "Launch Statistics"

BY_SECTION: Final = MappingProxyType(
    {
        (_SPEED, "Memory Throughput", "%"): "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        (_MEMORY, "Memory Throughput", "byte/s"): "dram__bytes.sum.per_second",
        (_LAUNCH, "Block Size", ""): "launch__block_size",
        (_LAUNCH, "Grid Size", ""): "launch__grid_size",
        (_DISTRIBUTION, "Average SM Active Cycles", "cycle"): "sm__cycles_active.avg",
        (_COMPUTE, "Executed Ipc Active", "inst/cycle"): "sm__inst_executed.avg.per_cycle_active",
    }
)
"""(section, label, base unit) → metric, for labels that several sections use."""

BY_LABEL: Final = MappingProxyType(
    {
        ("DRAM Frequency", "hz"): "dram__cycles_elapsed.avg.per_second",
        ("SM Frequency", "hz"): "gpc__cycles_elapsed.avg.per_second",
        ("Elapsed Cycles", "cycle"): "gpc__cycles_elapsed.max",
        ("DRAM Throughput", "%"): "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        ("Duration", "ns"): "gpu__time_duration.sum",
        ("L1/TEX Cache Throughput", "%"): "l1tex__throughput.avg.pct_of_peak_sustained_active",
        ("L2 Cache Throughput", "%"): "lts__throughput.avg.pct_of_peak_sustained_elapsed",
        ("SM Active Cycles", "cycle"): "sm__cycles_active.avg",
        ("Compute (SM) Throughput", "%"): "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        ("SM [%]", "%"): "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        ("Memory [%]", "%"): "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        ("Maximum Buffer Size", "byte"): "profiler__pmsampler_buffer_size_bytes",
        ("Maximum Sampling Interval", "ns"): "profiler__pmsampler_interval_time",
        ("# Pass Groups", ""): "profiler__pmsampler_pass_groups",
        ("Executed Ipc Active", "inst/cycle"): "sm__inst_executed.avg.per_cycle_active",
        ("Executed Ipc Elapsed", "inst/cycle"): "sm__inst_executed.avg.per_cycle_elapsed",
        ("Issued Ipc Active", "inst/cycle"): "sm__inst_issued.avg.per_cycle_active",
        ("Local Memory Spilling Requests", ""): "derived__local_spilling_requests",
        ("Local Memory Spilling Request Overhead", "%"): "derived__local_spilling_requests_pct",
        ("Mem Busy", "%"): "gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed",
        ("Max Bandwidth", "%"): "gpu__compute_memory_request_throughput.avg.pct_of_peak_sustained_elapsed",
        ("Mem Pipes Busy", "%"): "sm__memory_throughput.avg.pct_of_peak_sustained_elapsed",
        ("L1/TEX Hit Rate", "%"): "l1tex__t_sector_hit_rate.pct",
        ("L2 Persisting Size", "byte"): "launch__persisting_l2_cache_size",
        ("L2 Hit Rate", "%"): "lts__t_sector_hit_rate.pct",
        ("One or More Eligible", "%"): "smsp__issue_active.avg.pct_of_peak_sustained_active",
        ("Issued Warp Per Scheduler", ""): "smsp__issue_active.avg.per_cycle_active",
        ("No Eligible", "%"): "smsp__issue_inst0.avg.pct_of_peak_sustained_active",
        ("Active Warps Per Scheduler", "warp"): "smsp__warps_active.avg.per_cycle_active",
        ("Eligible Warps Per Scheduler", "warp"): "smsp__warps_eligible.avg.per_cycle_active",
        ("Warp Cycles Per Issued Instruction", "cycle"): "smsp__average_warp_latency_per_inst_issued.ratio",
        ("Warp Cycles Per Executed Instruction", "cycle"): "smsp__average_warps_active_per_inst_executed.ratio",
        ("Avg. Active Threads Per Warp", ""): "smsp__thread_inst_executed_per_inst_executed.ratio",
        ("Avg. Not Predicated Off Threads Per Warp", ""): "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
        ("Avg. Executed Instructions Per Scheduler", "inst"): "smsp__inst_executed.avg",
        ("Executed Instructions", "inst"): "smsp__inst_executed.sum",
        ("Avg. Issued Instructions Per Scheduler", "inst"): "smsp__inst_issued.avg",
        ("Issued Instructions", "inst"): "smsp__inst_issued.sum",
        ("Cluster Scheduling Policy", ""): "launch__cluster_scheduling_policy",
        ("Cluster Size", ""): "launch__cluster_size",
        ("Function Cache Configuration", ""): "launch__func_cache_config",
        ("Registers Per Thread", "register/thread"): "launch__registers_per_thread",
        ("Shared Memory Configuration Size", "byte"): "launch__shared_mem_config_size",
        ("Driver Shared Memory Per Block", "byte/block"): "launch__shared_mem_per_block_driver",
        ("Dynamic Shared Memory Per Block", "byte/block"): "launch__shared_mem_per_block_dynamic",
        ("Static Shared Memory Per Block", "byte/block"): "launch__shared_mem_per_block_static",
        ("# SMs", "SM"): "launch__sm_count",
        ("Stack Size", ""): "launch__stack_size",
        ("Threads", "thread"): "launch__thread_count",
        ("# TPCs", ""): "launch__tpc_count",
        ("Enabled TPC IDs", ""): "launch__tpc_enabled",
        ("Uses Green Context", ""): "launch__uses_green_context",
        ("Waves Per SM", ""): "launch__waves_per_multiprocessor",
        ("Max Active Clusters", "cluster"): "launch__cluster_max_active",
        ("Max Cluster Size", "block"): "launch__cluster_max_potential_size",
        ("Overall GPU Occupancy", "%"): "launch__occupancy_cluster_gpu_pct",
        ("Cluster Occupancy", "%"): "launch__occupancy_cluster_pct",
        ("Block Limit Barriers", "block"): "launch__occupancy_limit_barriers",
        ("Block Limit SM", "block"): "launch__occupancy_limit_blocks",
        ("Block Limit Registers", "block"): "launch__occupancy_limit_registers",
        ("Block Limit Shared Mem", "block"): "launch__occupancy_limit_shared_mem",
        ("Block Limit Warps", "block"): "launch__occupancy_limit_warps",
        ("Theoretical Active Warps per SM", "warp"): "sm__maximum_warps_avg_per_active_cycle",
        ("Theoretical Active Warps per SM", "warp/cycle"): "sm__maximum_warps_avg_per_active_cycle",
        ("Theoretical Occupancy", "%"): "sm__maximum_warps_per_active_cycle_pct",
        ("Achieved Occupancy", "%"): "sm__warps_active.avg.pct_of_peak_sustained_active",
        ("Achieved Active Warps Per SM", "warp"): "sm__warps_active.avg.per_cycle_active",
        ("Average DRAM Active Cycles", "cycle"): "dram__cycles_active.avg",
        ("Total DRAM Elapsed Cycles", "cycle"): "dram__cycles_elapsed.sum",
        ("Average L1 Active Cycles", "cycle"): "l1tex__cycles_active.avg",
        ("Total L1 Elapsed Cycles", "cycle"): "l1tex__cycles_elapsed.sum",
        ("Average L2 Active Cycles", "cycle"): "lts__cycles_active.avg",
        ("Total L2 Elapsed Cycles", "cycle"): "lts__cycles_elapsed.sum",
        ("Total SM Elapsed Cycles", "cycle"): "sm__cycles_elapsed.sum",
        ("Average SMSP Active Cycles", "cycle"): "smsp__cycles_active.avg",
        ("Total SMSP Elapsed Cycles", "cycle"): "smsp__cycles_elapsed.sum",
        ("Branch Instructions Ratio", "%"): "derived__smsp__inst_executed_op_branch_pct",
        ("Branch Instructions", "inst"): "smsp__inst_executed_op_branch.sum",
        ("Branch Efficiency", "%"): "smsp__sass_average_branch_targets_threads_uniform.pct",
        ("Avg. Divergent Branches", "branches"): "smsp__sass_branch_targets_threads_divergent.avg",
    }
)
"""(label, base unit) → metric, whatever the section."""


def metric_of(section: str, label: str, unit: str) -> str:
    """The metric behind a row of the details page: the name itself where the page prints names.

    :param unit: base unit.
    """
    name = _metric_name(label)
    if name:
        return name
    known = BY_SECTION.get((section, label, unit)) or BY_LABEL.get((label, unit))
    return known or f"{section}/{label}"


def _metric_name(label: str) -> str | None:
    """The metric name in a label, alone (``--print-metric-name name``) or beside its label (``label-name``)."""
    words = label.replace("(", " ").replace(")", " ").split()
    if len(words) == 1:
        return words[0] if "_" in words[0] and words[0][0].isalpha() else None
    return next((word for word in words if "__" in word and word[0].isalpha()), None)
