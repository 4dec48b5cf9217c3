"""Writing files atomically, and showing untrusted text safely."""
