#!/bin/bash
# What scripts do on machines with ConnectX adapters before NCCL, UCX or Mooncake start: choose the adapters and the
# GID index, print where the adapters are, and measure. It uses nothing of urdma, and runs on urdma by
#
#   urdma exec --profile cx6 -- examples/connectx.sh
#
# Needs ibverbs-utils and perftest. PORT is the TCP port by which the two ends of the measurement meet.
set -euo pipefail
shopt -s nullglob
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT

class=/sys/class/infiniband
ports=()
for state in "$class"/mlx5_*/ports/*/state; do
	port=${state%/state}
	if grep -q ACTIVE "$state" && grep -q 'RoCE v2' "$port"/gid_attrs/types/* 2>/dev/null; then
		ports+=("$port")
	fi
done
[ ${#ports[@]} -gt 0 ] || { echo "no active mlx5 port with RoCE v2" >&2; exit 1; }

# gid_index PORT: prints the index of the first RoCE v2 GID that stands for an IPv4 address.
gid_index() {
	local gid
	for gid in "$1"/gids/*; do
		if grep -q '^0000:0000:0000:0000:0000:ffff:' "$gid" && grep -q v2 "$1/gid_attrs/types/${gid##*/}"; then
			echo "${gid##*/}"
			return
		fi
	done
	return 1
}

hcas=()
for port in "${ports[@]}"; do
	dev=${port#"$class"/}
	hcas+=("${dev%%/*}:${port##*/}")
done
export NCCL_IB_HCA NCCL_IB_GID_INDEX UCX_NET_DEVICES UCX_IB_GID_INDEX
NCCL_IB_HCA=$(IFS=,; echo "=${hcas[*]}")
NCCL_IB_GID_INDEX=$(gid_index "${ports[0]}")
UCX_NET_DEVICES=${NCCL_IB_HCA#=} UCX_IB_GID_INDEX=$NCCL_IB_GID_INDEX
echo "NCCL_IB_HCA=$NCCL_IB_HCA NCCL_IB_GID_INDEX=$NCCL_IB_GID_INDEX"

# As ibdev2netdev of MLNX_OFED prints it.
for port in "${ports[@]}"; do
	dev=${port#"$class"/}
	for net in "$class/${dev%%/*}"/device/net/*; do
		echo "${dev%%/*} port ${port##*/} ==> ${net##*/} (Up)"
	done
done

# Where the adapters are: PCI address, driver, link, memory node and CPUs.
for dev in "$class"/mlx5_*; do
	pci=$(readlink -f "$dev/device")
	case $(cat "$pci/vendor") in
	0x15b3) ;;
	*) echo "${dev##*/} is no adapter of Mellanox" >&2; exit 1 ;;
	esac
	echo "${dev##*/} $(cat "$dev/hca_type") is ${pci##*/}, $(basename "$(readlink "$pci/driver")")," \
		"$(cat "$pci/current_link_speed") x$(cat "$pci/current_link_width")," \
		"node $(cat "$pci/numa_node"), CPUs $(cat "$pci/local_cpulist")"
done

# As show_gids of MLNX_OFED prints it.
printf 'DEV\tPORT\tINDEX\tGID\t\t\t\t\tVER\tDEV\n'
for port in "${ports[@]}"; do
	dev=${port#"$class"/}
	for gid in "$port"/gids/*; do
		i=${gid##*/}
		printf '%s\t%s\t%s\t%s\t%s\t%s\n' "${dev%%/*}" "${port##*/}" "$i" "$(cat "$gid")" \
			"$(grep -o 'v[12]$' "$port/gid_attrs/types/$i")" "$(cat "$port/gid_attrs/ndevs/$i")"
	done
done

ibv_devinfo | grep -c PORT_ACTIVE | sed 's/^/active ports: /'

# Both ends on this machine, on the first adapter.
measure=(ib_write_bw -d "${hcas[0]%:*}" -i "${hcas[0]#*:}" -x "$NCCL_IB_GID_INDEX" -n 100 -p "${PORT:-18515}")
"${measure[@]}" >/dev/null &
for _ in {1..100}; do
	if "${measure[@]}" 127.0.0.1 2>/dev/null; then
		wait
		exit
	fi
	kill -0 $! # the server
	sleep 0.1
done
exit 1
