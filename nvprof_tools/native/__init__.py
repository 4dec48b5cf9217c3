"""Native code: page decoder and look-ups, built where there is a compiler; without it all is the same but speed."""
