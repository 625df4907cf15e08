#!/bin/sh
# Prints the toy text of the tests, JSON Lines: documents of 1 to 59 words, in an order that only
# looks random, so that rows differ in how many labels count.
awk 'BEGIN {
  split("tile stone mosaic rank and the of a", words, " ")
  x = 7
  for (document = 0; document < 80; ++document) {
    x = (x * 1103 + 12345) % 65536
    count = 1 + x % 59
    line = ""
    for (i = 0; i < count; ++i) { x = (x * 1103 + 12345) % 65536; line = line words[1 + x % 8] " " }
    printf "{\"text\": \"%s\"}\n", line
  }
}'
