"""From the files in which a site has its scheduler's policy to headway's configuration."""
