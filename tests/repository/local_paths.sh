#!/bin/sh
# No file names a folder of somebody's machine or the host of a package registry.
. "$(dirname "$0")/common.sh"
# The brackets keep the patterns from matching this file.
folders='(^|[^A-Za-z0-9_.~/*-])/([h]ome|[r]oot|[w]ork|[U]sers|[m]nt|[t]mp|[o]pt|[f]arm)/'
hosts='deb[.]debian[.]org|pypi[.]org|pythonhosted[.]org|registry[.]npmjs|crates[.]io|proxy[.]golang|download[.]pytorch'
project_files '*' | xargs -d '\n' grep -nHIE "$folders|$hosts" | cut -c1-160 | report
