#!/bin/sh
# Every #include under src/ obeys cmake/modules.txt: under one include root an upward include
# compiles in silence.
. "$(dirname "$0")/common.sh"
project_files 'src/*.h' 'src/*.cpp' | xargs awk -f "$here/includes.awk" cmake/modules.txt | report
