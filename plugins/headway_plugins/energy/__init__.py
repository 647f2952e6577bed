"""Energy-aware plugins, and the energy profiles that are installed with them."""
