"""Native code: the page decoder, built when a compiler is there, missed by nothing but speed when it is not."""
