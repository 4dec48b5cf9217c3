"""The types every step shares: tables, trace, log, attribution, quality items."""
