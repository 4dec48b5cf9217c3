"""Speed of import and attribution on generated exports of any size: ``make bench``."""
