"""Grid sites: users log on, submit bursts of serial jobs and log off; what a site does with these jobs."""
