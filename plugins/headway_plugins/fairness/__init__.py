"""How unfair a schedule was to each job: fair start times and resource equality (Sabin, Sadayappan 2005)."""
