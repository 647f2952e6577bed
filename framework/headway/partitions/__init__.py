"""Resources that are provisioned, wired and booted before a job can have them.

The words of Y. Aridor, T. Domany, O. Goldshmidt, Y. Kliteynik, J. Moreira and E. Shmueli: "Open Job
Management Architecture for the Blue Gene/L Supercomputer", 2005:

- :mod:`.torus`: the machine: midplanes, links, which links a partition takes, which partitions conflict.
- :mod:`.cabling`: a written list of cables against what a torus has.
- :mod:`.timing`: how long a step takes at a size.
- :mod:`.bridge`: the *bridge*, the only interface through which plugins and adapters provision, boot and
  release partitions and run jobs on them, and the states of both.
- :mod:`.cycle`: what a job goes through, stage by stage, over any bridge: the job manager's part and the
  proxy's.

Which partition a job gets, and which are kept booted, is a plugin's business.
"""
