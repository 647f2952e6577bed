"""Elastic job bundling for real, as an ordinary user: ``headway bundle``.

A manager, a daemon of the user's (:mod:`.manager`), speaks to the batch system through
:mod:`headway.adapter.user_side` alone and lets :mod:`.brain` decide, which does no I/O. Workers run inside
the subjobs (:mod:`.worker`), ask the manager over an authenticated link what they are to do, and say how it
is. All that must outlive the manager is in its database (:mod:`.store`).
"""
