#!/bin/sh
# Nothing in the sources says of itself that it is unfinished.
. "$(dirname "$0")/common.sh"
project_files 'src/*' 'bench/*' 'scripts/*' 'Makefile' '*CMakeLists.txt' '*.cmake' | xargs grep -nHIwiE \
  'T[O]DO|F[I]XME|X[X]X|H[A]CK|n[o]t implemented|u[n]implemented|f[o]r now' | report
