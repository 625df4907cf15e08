# Reads cmake/modules.txt, then sources under src/, and prints every #include "..." that the module
# table does not allow.

FILENAME == "cmake/modules.txt" {
  if (/^#/ || !NF) next
  module = $1
  if (sub(/:$/, "", module) == 0) { print FILENAME ":" FNR ": expected 'MODULE: MODULES IT MAY USE'"; next }
  known[module] = 1
  for (i = 2; i <= NF; ++i) {
    allowed[module, $i] = 1
    used = $i
    sub(/\/.*/, "", used)
    # The table is in order, so it has no cycle.
    if (!(used in known) || used == module)
      print FILENAME ":" FNR ": " module " uses " used ", which does not stand above it"
  }
  next
}

FNR == 1 {
  split(FILENAME, part, "/")
  module = part[2]
  if (!(module in known)) print FILENAME ":1: src/" module " is not in cmake/modules.txt"
}

/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
  header = $0
  quoted = (header ~ /include[ \t]*"/)
  sub(/^[^<"]*[<"]/, "", header)
  sub(/[>"].*/, "", header)
  target = header
  sub(/\/.*/, "", target)
  where = FILENAME ":" FNR ": "
  if (!quoted) {
    if (target in known && header != target) print where "<" header "> is ours: include it with quotes"
  } else if (header !~ /\// || header ~ /\.\./) {
    print where "\"" header "\": includes start at src/, as in \"core/view.h\""
  } else if (!(target in known)) {
    print where "\"" header "\": src/" target " is not in cmake/modules.txt"
  } else if (target != module && !((module, target) in allowed) && !((module, header) in allowed)) {
    print where module " may not use " header
  }
}
