"""Elastic job bundling: a wide job runs early on several small subjobs, and moves as these come and go."""
