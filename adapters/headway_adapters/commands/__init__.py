"""PBS and LSF at the level of their commands, for trying a configuration and for tests.

``headway emulate-commands pbs DIR`` puts executables named ``qstat``, ``qrun``, ``qsub``, ... into
``DIR/bin`` and serves them from an emulated cluster; ``lsf`` does the same with ``bjobs``, ``brun``,
``bsub``, .... They print what the real ones were seen to print, with their messages and exit codes.
No job is executed. See :mod:`~headway_adapters.commands.server` for how they are connected and
:mod:`~headway_adapters.commands.machine` for what runs behind them.
"""

from headway_adapters.commands.emulator import Emulator, EmulatorOptions

__all__ = ["Emulator", "EmulatorOptions"]
