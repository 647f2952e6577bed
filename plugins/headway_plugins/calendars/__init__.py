"""Calendars: when which part of the machine is kept free."""
