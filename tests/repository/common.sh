# Sourced by the checks beside it, which are used as CHECK.sh ROOT [...]. A check prints a line for
# each violation, "file:line: what is wrong", and exits 1 when there was one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"
shift

# The project's own files that match the patterns ('src/*.h'; * crosses folders): those that git
# tracks or would track; in a tree that git does not know, all but what is built.
project_files() {
  if [ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ]; then
    git ls-files --cached --others --exclude-standard -- "$@"
  else
    for pattern; do
      find . -path "./$pattern" ! -path './build/*' ! -path './.git/*' ! -path './runs/*' \
        ! -path './.venv/*' | sed 's|^\./||'
    done
  fi | sort -u | while read -r file; do
    if [ -f "$file" ]; then printf '%s\n' "$file"; fi
  done
}

# Passes violations on to stdout; fails if there was one.
report() {
  if grep .; then exit 1; fi
}
