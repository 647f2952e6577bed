"""Security levels as something that a scheduler spends slack on: SAREG, and the schedulers it was compared
with.

``levels`` has what protection costs and which levels a job gets; ``grid`` the algorithms, without the
framework; ``workload`` the paper's workload.
"""
