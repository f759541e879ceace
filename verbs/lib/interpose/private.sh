#!/bin/sh
# Prints a linker script that defines what libibverbs exports to rdma-core's
# drivers alone, under the same version nodes; see provider.c.
#
#   private.sh LIBIBVERBS
set -eu
nm -D --defined-only --with-symbol-versions "$1" | awk '
{ split($3, part, "@+") }
part[2] !~ /^IBVERBS_PRIVATE_/ { next }
{
	nodes[part[2]] = nodes[part[2]] " " part[1] ";"
	if (part[1] == "ibv_query_gid_type") # ours, see liburdma.map
		next
	print part[1] " = urdma_provider_" ($2 ~ /[TtWi]/ ? "call" : "data") ";"
}
END {
	for (node in nodes)
		print "VERSION { " node " { global:" nodes[node] " }; }"
}'
