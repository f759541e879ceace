package main

import (
	"strconv"
	"strings"

	"urdma/config"
	"urdma/dpdk/port"
	"urdma/urdmad/sysfs"
	"urdma/verbs/personality"
)

// versionNumber packs "1.2.3-anything" as major<<16 | minor<<8 | patch.
func versionNumber(v string) (n uint32) {
	v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "-")
	for i, part := range strings.SplitN(v, ".", 3) {
		d, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			break
		}
		n |= uint32(d) << (16 - 8*i)
	}
	return n
}

func sysfsDevices(cfg *config.Config, ports []port.Port) (out []sysfs.Device) {
	for i, p := range cfg.Ports {
		info := ports[i].Info()
		out = append(out, sysfs.Device{Name: p.Name, Firmware: version, Up: ports[i].Link(),
			Port: personality.Port{MAC: info.MAC, Addr: p.Address.Addr()}, Personality: personality.Named(p.Transport)})
	}
	return out
}
